// Light and dark, and paper, which is white. What has to be drawn anew for one or the other is in `themed` and `printed`.

const themed = [];
const printed = [];
const isDark = () => document.documentElement.dataset.theme === "dark";

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.getElementById("theme").textContent = dark ? "Light" : "Dark";
  document.getElementById("theme").setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
  for (const redraw of themed) redraw();
}

const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
prefersDark.addEventListener("change", (event) => setTheme(event.matches));
document.getElementById("theme").addEventListener("click", () => setTheme(!isDark()));
document.getElementById("print").addEventListener("click", () => window.print());

let darkBefore = false;
window.addEventListener("beforeprint", () => {
  darkBefore = isDark();
  setTheme(false);
  for (const draw of printed) draw();
});
window.addEventListener("afterprint", () => setTheme(darkBefore));

function nothing(place, why) {
  const line = document.createElement("p");
  line.className = "none";
  line.textContent = why;
  place.append(line);
}
