// What all plots share: colours by theme, axes, drawing when they come into view, zooming by keys and together.

const SERIES = ["#0072b2", "#e69f00", "#cc79a7", "#d55e00", "#8c8c8c", "#009e73", "#56b4e9", "#b8a800"];  // Okabe and Ito 2008
const RAMPS = {
  light: ["#ffffff", "#cfe1f2", "#7fb2d9", "#2f79b5", "#0b4a82", "#04213f"],
  dark: ["#12171f", "#1d3a5c", "#2d6a9a", "#4fa3c7", "#9fd8cf", "#fff7b0"],
};

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const [TIME_UNIT, TIME_FACTOR] = timeUnit(model.span_s);
const SPAN = model.span_s / TIME_FACTOR;
const TIME_NAME = `time since the start (${TIME_UNIT})`;

function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

// 256 colours between the ramp's, as 32-bit pixels (little endian: alpha, blue, green, red).
function rampPixels() {
  const stops = RAMPS[isDark() ? "dark" : "light"].map(rgb);
  return Uint32Array.from({ length: 256 }, (_, step) => {
    const place = (step / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    const [r, g, b] = [0, 1, 2].map((k) => Math.round(stops[low][k] + (stops[low + 1][k] - stops[low][k]) * (place - low)));
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  });
}

function axisLabels() {
  return { color: colour("faint"), formatter: tick, hideOverlap: true };
}

function axis(name, more = {}) {
  return {
    type: "value", name, nameLocation: "middle", nameGap: 30, nameTextStyle: { color: colour("text"), fontSize: 13 },
    axisLabel: axisLabels(), axisLine: { show: true, lineStyle: { color: colour("line") } },
    axisTick: { show: true }, splitLine: { show: false }, ...more,
  };
}

const MOST_LETTERS = 36;  // of a row's name
function leftRoom(rows) {
  const longest = Math.max(4, ...rows.map((row) => Math.min(row.length, MOST_LETTERS)));
  return 48 + longest * 6.8;
}

// The folder that all names have in common, with the slash at its end; empty where that is none.
function commonFolder(names) {
  if (names.length < 2) return "";
  const parts = names.map((name) => name.split("/").slice(0, -1));
  let same = 0;
  while (parts.every((one) => same < one.length && one[same] === parts[0][same])) same += 1;
  return same > 1 ? `${parts[0].slice(0, same).join("/")}/` : "";
}

function rowAxis(name, rows, width) {
  return axis(name, {
    type: "category", data: rows, inverse: true, nameGap: width - 22, splitArea: { show: false },
    axisLabel: { color: colour("faint"), fontSize: 11, formatter: (text) => shortened(text, MOST_LETTERS) },
  });
}

function timeAxis() {
  return axis(TIME_NAME, { min: 0, max: SPAN, axisLabel: { ...axisLabels(), showMaxLabel: false } });
}

function timeZoom(extra = []) {
  return [
    { id: "time", type: "inside", xAxisIndex: 0, filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false },
    { id: "bar", type: "slider", xAxisIndex: 0, filterMode: "none", height: 18, bottom: 6, showDataShadow: false, brushSelect: false,
      labelFormatter: (value) => `${tick(Number(value.toPrecision(4)))} ${TIME_UNIT}`, textStyle: { color: colour("faint") } },
    ...extra,
  ];
}

function legend() {
  return { top: 0, textStyle: { color: colour("text") }, inactiveColor: colour("line") };
}

function lineTip(unit) {
  return {
    trigger: "axis", renderMode: "richText", confine: true, backgroundColor: colour("page"), borderColor: colour("line"), textStyle: { color: colour("text") },
    axisPointer: { label: { show: false } },
    formatter: (points) => [`${tick(points[0].axisValue)} ${TIME_UNIT}`, ...points.map((p) => `${p.seriesName}: ${worded(p.value[2], unit)}`)].join("\n"),
  };
}

const plots = [];
let linking = false;

// A plot: `option()` makes ECharts' option; `label` says in words what it shows. Drawn when it comes near the window.
class Plot {
  constructor(place, { label, option, overTime = true, height = 0 }) {
    this.makeOption = option;
    this.overTime = overTime;
    this.chart = null;
    this.stale = false;  // what it shows is older than what it should
    this.shown = false;
    this.pending = false;  // an option is on its way
    this.element = document.createElement("div");
    this.element.className = "canvas";
    if (height) this.element.style.height = `${height}px`;
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "img");
    this.element.setAttribute("aria-label", label);
    if (overTime) this.element.setAttribute("aria-describedby", "keys");
    place.append(this.element);
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.hidden = true;
    place.append(this.tip);
    this.element.addEventListener("keydown", (event) => this.key(event));
    plots.push(this);
    watcher.observe(this.element);
  }

  // In several tasks: making a chart, saying what it shows, and (by ECharts, at the next frame) drawing.
  draw(atOnce = false) {
    this.element.dataset.drawn = "no";
    this.pending = true;
    this.stale = false;
    if (this.chart === null) {
      this.chart = echarts.init(this.element, null, { renderer: "canvas" });
      this.chart.on("datazoom", () => this.zoomed());
      this.chart.on("rendered", () => { this.element.dataset.drawn = this.pending ? "no" : "yes"; });
      this.element.addEventListener("mouseleave", () => { this.tip.hidden = true; });
    }
    if (atOnce) this.show(false);
    else later(() => this.show(true));
  }

  show(lazily) {
    const option = { animation: false, textStyle: { fontFamily: "system-ui, sans-serif" }, ...this.makeOption() };
    if (this.overTime && window.zoomOfTime) Object.assign(option.dataZoom[0], window.zoomOfTime);
    if (this.overTime && window.zoomOfTime) Object.assign(option.dataZoom[1], window.zoomOfTime);
    this.shown = true;
    this.pending = false;
    this.chart.setOption(option, { notMerge: true, lazyUpdate: lazily });
    if (lazily) this.chart.getZr().wakeUp();
  }

  // Draws again: at once where it is in view, else when it comes there.
  redraw() {
    this.stale = true;
    this.element.dataset.drawn = "no";
    if (this.chart === null || this.element.dataset.near !== "yes") return;
    this.pending = true;
    later(() => this.stale && this.draw());
  }

  zoomTo(start, end) {
    linking = true;
    this.chart.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, start, end });
    linking = false;
  }

  range() {
    const [zoom] = this.chart.getOption().dataZoom ?? [];
    return zoom ? [zoom.start, zoom.end] : [0, 100];
  }

  zoomed() {
    if (linking || !this.overTime) return;
    const [start, end] = this.range();
    window.zoomOfTime = { start, end };
    for (const other of plots) {
      if (other === this || !other.overTime || other.chart === null) continue;
      if (other.element.dataset.near === "yes") later(() => other.shown && other.zoomTo(window.zoomOfTime.start, window.zoomOfTime.end));
      else other.stale = true;
    }
  }

  key(event) {
    if (!this.shown || event.ctrlKey || event.altKey || event.metaKey) return;
    const [start, end] = this.range();
    const width = end - start;
    const change = {
      "+": [start + width / 4, end - width / 4], "=": [start + width / 4, end - width / 4], "-": [start - width / 2, end + width / 2],
      ArrowLeft: [start - width / 4, end - width / 4], ArrowRight: [start + width / 4, end + width / 4], 0: [0, 100], Home: [0, 100],
    }[event.key];
    if (!change) return;
    event.preventDefault();
    const kept = Math.min(100, change[1] - change[0]);
    const from = Math.max(0, Math.min(change[0], 100 - kept));
    this.chart.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, start: from, end: from + kept });
  }

  // Says at the mouse what `said(x, y)` says of a point of the plot, in the units of its axes; null: nothing.
  follow(said) {
    const show = (event) => {
      if (!this.shown || !this.chart.containPixel({ gridIndex: 0 }, [event.offsetX, event.offsetY])) {
        this.tip.hidden = true;
        return;
      }
      const text = said(...this.chart.convertFromPixel({ gridIndex: 0 }, [event.offsetX, event.offsetY]));
      this.tip.hidden = text === null;
      if (text === null) return;
      this.tip.textContent = text;
      const right = event.offsetX > this.element.clientWidth / 2;
      this.tip.style.top = `${this.element.offsetTop + event.offsetY + 14}px`;
      this.tip.style.left = right ? "auto" : `${event.offsetX + 14}px`;
      this.tip.style.right = right ? `${this.element.clientWidth - event.offsetX + 14}px` : "auto";
    };
    this.element.addEventListener("mousemove", show);
  }
}

// One piece of work a task, so that the page answers between them.
const waiting = [];
function later(work) {
  waiting.push(work);
  if (waiting.length === 1) setTimeout(work_off, 0);
}
function work_off() {
  waiting[0]();
  waiting.shift();
  if (waiting.length) setTimeout(work_off, 0);
}

const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const plot = plots.find((one) => one.element === entry.target);
    plot.element.dataset.near = entry.isIntersecting ? "yes" : "no";
    if (!entry.isIntersecting || (plot.chart !== null && !plot.stale)) continue;
    plot.element.dataset.drawn = "no";
    later(() => (plot.chart === null || plot.stale) && plot.draw());
  }
}, { rootMargin: "300px" });

// Buttons of which one is pressed; `chosen(number)` is called at the start and at each change.
function choices(place, label, names, chosen) {
  const box = document.createElement("div");
  box.className = "choices";
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", label);
  const buttons = names.map((name, number) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = shortened(name, 90);
    button.addEventListener("click", () => press(number));
    box.append(button);
    return button;
  });
  const press = (number) => {
    buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(at === number)));
    chosen(number);
  };
  place.append(box);
  if (names.length < 2) box.hidden = true;
  return press;
}

// Why something is not shown. Of a log of another tool nobody knows whether it was not there or not recorded.
function missing(place, why) {
  nothing(place, model.imported ? `Not in the log of ${model.imported}, which may not record it.` : why);
}

function placeOf(name) {
  return document.querySelector(`[data-plot="${name}"]`);
}
