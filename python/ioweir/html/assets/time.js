// Plots over time: ranks, shares, calls at once, targets and files, offsets.

const NOUN = model.noun;

// A heat map of rows over time with a choice of kinds; `kinds`: [{name, unit, rows, levels, most, power}].
function heatPlot(place, { rows, kinds, rowName, said, label }) {
  let kind = kinds[0];
  let plot = null;
  const sources = new Map();
  const changed = () => plot && plot.redraw();
  const source = () => {
    if (!sources.has(kind)) sources.set(kind, new Levels(kind, model.span_s, changed));
    return sources.get(kind);
  };
  const heat = new Heat({
    source: (wide, part) => {
      const found = source().of(wide, part);
      return found && { ...found, rows: rows.length };
    },
    palette: rampPixels,
  });
  const scale = rampScale(place, () => kind.most, () => kind.unit, () => kind.power);
  const left = leftRoom(rows);
  plot = new Plot(place, {
    label,
    height: rows.length > 48 ? 640 : Math.max(240, 130 + rows.length * 15 + Math.min(rows.length, 8) * 5),
    option: () => {
      scale(kind.name);
      return {
        grid: { left, right: 24, top: 12, bottom: 78 },
        xAxis: timeAxis(), yAxis: rowAxis(rowName, rows, left),
        dataZoom: timeZoom([{ id: "rows", type: "inside", yAxisIndex: 0, filterMode: "none", zoomOnMouseWheel: "shift", moveOnMouseWheel: false, moveOnMouseMove: false }]),
        series: [heat.series()],
      };
    },
  });
  plot.follow((time, row) => {
    const [start, end] = plot.range();
    const level = source().of(plot.element.clientWidth, (end - start) / 100);
    if (level === null || time < 0 || time > SPAN || !(row in rows)) return null;
    const bin = Math.min(level.bins - 1, Math.floor((time / SPAN) * level.bins));
    const value = source().value(level.cells[row * level.bins + bin]);
    const wide = model.span_s / level.bins;
    return `${said(rows[row])}, at ${seconds(bin * wide)} for ${seconds(wide)}\n${kind.name}: ${worded(value, kind.unit)}`;
  });
  return (number) => {
    kind = kinds[number];
    plot.redraw();
  };
}

function timelinePlot() {
  const place = placeOf("timeline");
  const { rows, kinds } = model.timelines;
  const shown = kinds.filter((kind) => kind.levels.length).map((kind) => ({ ...kind, unit: "share" }));
  if (!shown.length) return missing(place, "Nothing was recorded.");
  let choose = null;
  const press = choices(place, "What is shown", shown.map((kind) => kind.name), (number) => choose && choose(number));
  choose = heatPlot(place, {
    rows, kinds: shown, rowName: NOUN, said: (row) => `${NOUN} ${row}`,
    label: `Heat map: ${rows.length} rows of ${NOUN}s over ${seconds(model.span_s)}; stronger colours where more of the time is spent in calls`,
  });
  press(0);
  if (model.refused) nothing(place, `To keep the page small, the finest views of ${count(model.refused)} plots are left out.`);
}

// Lines over time. `stack`: areas on top of each other; each is drawn down to the axis, the highest first.
function linePlot(place, { lines, unit, factor, name, label, stack = false, colours = SERIES, most = null }) {
  const bins = lines[0].values.length;
  const wide = SPAN / bins;
  const below = new Array(bins).fill(0);
  const data = lines.map((line) => {
    const points = line.values.map((value, bin) => {
      if (stack) below[bin] += value;
      return [(bin + 0.5) * wide, (stack ? below[bin] : value) / factor, value];
    });
    return [[0, ...points[0].slice(1)], ...points, [SPAN, ...points[bins - 1].slice(1)]];
  });
  const style = (number) => (stack ? { width: 0 } : { width: 1.5, type: ["solid", "dashed", "dotted", [8, 3, 2, 3]][number % 4] });
  new Plot(place, {
    label,
    option: () => ({
      grid: { left: 84, right: 24, top: 36, bottom: 78 }, legend: { ...legend(), ...(stack ? { icon: "rect" } : {}), data: lines.map((line) => line.name) }, tooltip: lineTip(unit),
      xAxis: timeAxis(), yAxis: axis(name, { nameGap: 52, min: 0, max: most }), dataZoom: timeZoom(),
      series: lines.map((line, number) => ({
        type: "line", name: line.name, data: data[number], showSymbol: false, step: stack ? "middle" : false, lineStyle: style(number), itemStyle: { color: colours[number] }, color: colours[number],
        z: stack ? 2 + lines.length - number : 2, areaStyle: stack ? { opacity: 1 } : undefined, sampling: stack ? undefined : "max", emphasis: { disabled: true },
      })),
    }),
  });
}

function sharesPlot() {
  const place = placeOf("shares");
  const { categories, over_time: over, waiting_recorded: waited } = model.shares;
  const used = categories.map((name, number) => ({ name, number, values: over[number] })).filter((one) => one.values.some((value) => value > 0));
  if (!used.length) return missing(place, "No time was spent in calls that were recorded.");
  linePlot(place, {
    lines: used, unit: "share", factor: 0.01, name: `share of all ${NOUN}s' time (%)`, stack: true, colours: used.map((one) => SERIES[one.number]), most: 100,
    label: `Stacked areas: the share of all ${NOUN}s' time in ${used.map((one) => one.name).join(", ")}`,
  });
  if (!waited) nothing(place, "Waiting in MPI outside of I/O is not in this trace, and looks like computation here.");
}

function byRankPlot() {
  const place = placeOf("by_rank");
  const { categories, rows, by_row: byRow, alive } = model.shares;
  const used = categories.map((name, number) => ({ name, number })).filter(({ number }) => byRow.some((row) => row[number] > 0));
  const [unit, factor] = timeUnit(Math.max(...alive, 1e-9));
  const left = leftRoom(rows);
  new Plot(place, {
    overTime: false, height: Math.min(900, 130 + rows.length * 18),
    label: `Bars: mean seconds of each of ${rows.length} rows of ${NOUN}s by what they were spent in`,
    option: () => ({
      grid: { left, right: 24, top: 36, bottom: 46 }, legend: legend(),
      tooltip: { trigger: "item", renderMode: "richText", confine: true, backgroundColor: colour("page"), textStyle: { color: colour("text") },
        formatter: (p) => `${NOUN} ${p.name}, ${p.seriesName}: ${seconds(p.value * factor)}` },
      xAxis: axis(`time of one ${NOUN} (${unit})`), yAxis: rowAxis(NOUN, rows, left),
      series: [...used.map(({ name, number }) => ({
        type: "bar", stack: "all", name, itemStyle: { color: SERIES[number] }, barCategoryGap: "20%", emphasis: { disabled: true },
        data: byRow.map((row) => row[number] / factor),
      })), {
        type: "bar", stack: "all", name: "outside of these calls", itemStyle: { color: colour("line"), opacity: 0.6 }, emphasis: { disabled: true },
        data: byRow.map((row, at) => Math.max(0, alive[at] - row.reduce((sum, one) => sum + one, 0)) / factor),
      }],
    }),
  });
}

function concurrencyPlots() {
  const { lines, rates } = model.concurrency;
  const place = placeOf("concurrency");
  if (lines.length) {
    linePlot(place, { lines, unit: "calls", factor: 1, name: "calls at once (mean)", label: `Lines: mean number of calls at once of ${lines.map((line) => line.name).join(", ")}` });
  } else missing(place, "No call of POSIX or MPI-IO moved bytes.");
  const second = placeOf("rates");
  if (!rates.length) return missing(second, "No POSIX call moved bytes.");
  const most = rates.reduce((top, line) => line.values.reduce((a, b) => Math.max(a, b), top), 0);
  const [unit, factor] = sizeUnit(most);
  linePlot(second, { lines: rates, unit: "B/s", factor, name: `bandwidth (${unit}/s)`, label: "Lines: bytes a second that POSIX calls wrote and read" });
}

function placesPlot() {
  const place = placeOf("places");
  const shown = model.places.filter((one) => one.rows.length && one.kinds.every((kind) => kind.levels.length) && (one.by === "file" || one.rows.length > 1));
  if (!shown.length) return missing(place, "No call moved bytes to or from a file.");
  const views = shown.flatMap((one) => one.kinds.map((kind) => ({ one, kind })));
  const boxes = [];
  const press = choices(place, "What is shown", views.map(({ one, kind }) => `${one.by}s: ${kind.name}`), (number) => {
    boxes.forEach((box, at) => { box.hidden = at !== number; });
  });
  for (const { one, kind } of views) {
    const box = document.createElement("div");
    place.append(box);
    boxes.push(box);
    const folder = commonFolder(one.rows);
    if (folder) nothing(box, `Names are those below ${folder}`);
    heatPlot(box, {
      rows: one.rows.map((name) => name.slice(folder.length) || name), kinds: [kind], rowName: one.by, said: (row) => row,
      label: `Heat map: ${one.rows.length} ${one.by}s over ${seconds(model.span_s)}, ${kind.name}`,
    });
    if (one.left_out) nothing(box, `${count(one.left_out)} more with ${bytes(one.left_out_bytes)} in all are not shown.`);
  }
  press(0);
  if (model.places.some((one) => one.by === "target" && one.rows.length === 1)) nothing(place, "All files lie in one folder, which counts as one target.");
}

// Few ranks: colours that all eyes tell apart; many: by the number of the rank, from dark to light.
function rankPixels() {
  const many = model.ranks;
  const pixels = new Uint32Array(65536);
  for (let rank = 0; rank < Math.min(many, 65535); rank += 1) {
    const [r, g, b] = rankColour(rank, many);
    pixels[rank + 1] = ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  }
  return pixels;
}

const CIVIDIS = ["#00224e", "#35456c", "#666970", "#948e77", "#c8b866", "#fee838"].map(rgb);  // Nunez et al. 2018
const FEW = [0, 1, 5, 3, 6, 2, 7, 4].map((at) => rgb(SERIES[at]));
function rankColour(rank, many) {
  if (many <= FEW.length) return FEW[rank];
  // Without the end of the ramp that is like the page.
  const [from, to] = isDark() ? [0.25, 1] : [0, 0.9];
  const place = (from + (to - from) * (rank / (many - 1))) * (CIVIDIS.length - 1);
  const low = Math.min(Math.floor(place), CIVIDIS.length - 2);
  return [0, 1, 2].map((k) => Math.round(CIVIDIS[low][k] + (CIVIDIS[low + 1][k] - CIVIDIS[low][k]) * (place - low)));
}

// Which colour is which rank: a function that draws it, in the colours of the theme.
function rankLegend(place) {
  const box = document.createElement("div");
  box.className = "scale";
  place.append(box);
  const many = model.ranks;
  const filled = (name, background) => {
    const one = document.createElement("span");
    one.className = name;
    one.style.background = background;
    return one;
  };
  const css = (rank) => `rgb(${rankColour(rank, many).join(",")})`;
  return () => {
    box.replaceChildren();
    if (many <= FEW.length) {
      for (let rank = 0; rank < many; rank += 1) box.append(filled("swatch", css(rank)), `${NOUN} ${model.names[rank]}`);
      return;
    }
    const stops = Array.from({ length: 6 }, (_, at) => css((at / 5) * (many - 1)));
    box.append(`${NOUN} ${model.names[0]}`, filled("bar", `linear-gradient(to right, ${stops.join(", ")})`), `${model.names[many - 1]}`);
  };
}

function offsetsPlot() {
  const place = placeOf("offsets");
  const shown = model.offsets.filter((one) => one.data !== null && one.calls > one.unknown);
  if (!shown.length) return missing(place, "No call names the place in a file that it touched.");
  const boxes = [];
  const press = choices(place, "File", shown.map((one) => `${shortened(one.name.split("/").pop(), 40)}: ${one.op}`), (number) => {
    boxes.forEach((box, at) => { box.hidden = at !== number; });
  });
  for (const one of shown) {
    const box = document.createElement("div");
    place.append(box);
    boxes.push(box);
    offsetPlot(box, one);
  }
  press(0);
}

function offsetPlot(place, one) {
  const heading = document.createElement("h3");
  heading.textContent = `${one.op}: ${one.file}`;
  place.append(heading);
  const legendOfRanks = rankLegend(place);
  let cells = null;
  const [unit, factor] = sizeUnit(one.reach_bytes);
  let pixels = null;
  const heat = new Heat({
    source: () => cells && { bins: one.bins, rows: one.rows, cells }, palette: () => pixels, fromBottom: true, rowSize: one.step_bytes / factor, last: true,
    begin: one.begin_s / TIME_FACTOR, span: one.span_s / TIME_FACTOR,
  });
  const from = one.begin_s / TIME_FACTOR;
  const span = one.span_s / TIME_FACTOR;
  const plot = new Plot(place, {
    label: `Offsets in ${one.file} over time, ${bytes(one.reach_bytes)} in ${count(one.calls)} calls, coloured by ${NOUN}`, height: 400, overTime: false,
    option: () => {
      pixels = rankPixels();
      legendOfRanks();
      const labels = { ...axisLabels(), showMaxLabel: false };
      return {
        grid: { left: 84, right: 24, top: 14, bottom: 78 },
        xAxis: { ...timeAxis(), min: from, max: from + span, axisLabel: { ...labels, showMinLabel: from === 0 } },
        yAxis: axis(`offset in the file (${unit})`, { nameGap: 56, min: 0, max: Math.max(one.reach_bytes, 1) / factor, axisLabel: labels }),
        dataZoom: timeZoom(), series: [heat.series()],
      };
    },
  });
  plot.follow((time, offset) => {
    const row = Math.floor((offset * factor) / one.step_bytes);
    const bin = Math.floor(((time - from) / span) * one.bins);
    const rank = cells && row >= 0 && row < one.rows && bin >= 0 && bin < one.bins ? cells[row * one.bins + bin] : 0;
    return rank ? `${NOUN} ${model.names[rank - 1]}\nabout ${bytes(row * one.step_bytes)} at ${seconds(one.begin_s + (bin * one.span_s) / one.bins)}` : null;
  });
  if (one.unknown) nothing(place, `Of ${count(one.unknown)} calls the place in the file is not known.`);
  unpacked(one.data, Uint16Array).then((found) => {
    cells = found;
    plot.redraw();
  });
}
