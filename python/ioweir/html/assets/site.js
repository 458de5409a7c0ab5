// The page of a site: its tables, and its colours.

const model = JSON.parse(document.getElementById("data").textContent);

function missing(place, why) {
  nothing(place, why);
}

setTheme(prefersDark.matches);
for (const name of ["programs", "findings", "weeks"]) tableOf(name);
document.documentElement.dataset.ready = "yes";
