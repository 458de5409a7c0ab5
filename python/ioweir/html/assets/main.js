// The page's buttons, and every part in turn, each in a task of its own.

for (const word of document.querySelectorAll(".noun")) {
  word.textContent = /^[A-Z]/.test(word.textContent) ? NOUN[0].toUpperCase() + NOUN.slice(1) : NOUN;
}

themed.push(() => plots.forEach((plot) => plot.redraw()));
printed.push(() => plots.forEach((plot) => plot.element.offsetParent !== null && plot.draw(true)));
setTheme(prefersDark.matches);

let resizing = 0;
window.addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => {
    for (const plot of plots) if (plot.chart !== null) later(() => plot.shown && plot.chart.resize());
  }, 150);
});

document.addEventListener("click", (event) => {
  const name = event.target.dataset?.copies;
  if (!name) return;
  const text = document.getElementById(name).textContent;
  const done = () => { event.target.textContent = "Copied"; };
  const select = () => {  // pages from a file may not be let at the clipboard
    window.getSelection().selectAllChildren(document.getElementById(name));
    event.target.textContent = document.execCommand("copy") ? "Copied" : "Selected: press Ctrl+C";
  };
  if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, select);
  else select();
});

for (const part of [
  timelinePlot, sharesPlot, byRankPlot, concurrencyPlots, compositionPlot, placesPlot, offsetsPlot,
  () => matrixPlot("waits", "waits", `No ${NOUN} waited for another in a collective MPI-IO call.`),
  () => matrixPlot("lock_waits", "lock_waits", "No call had to wait for a lock."), () => tableOf("locks"),
  sizesPlot, () => tableOf("files"), () => tableOf("rank_table"), () => tableOf("sites"),
  () => { document.documentElement.dataset.ready = "yes"; },
]) later(part);
