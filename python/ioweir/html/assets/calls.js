// One MPI-IO call as the POSIX calls that it made, rank by rank.

const PARTS = ["write", "read", "lock", "unlock", "other"];
const PART_COLOURS = ["#0072b2", "#e69f00", "#d55e00", "#cc79a7", "#8c8c8c"];

function compositionPlot() {
  const place = placeOf("composition");
  const found = model.compositions;
  if (found === null) return nothing(place, "Not looked into: the trace is too large to be held as a whole.");
  if (!found.length) return missing(place, "No MPI-IO call moved data through POSIX calls that were recorded.");
  const boxes = [];
  const press = choices(place, "Function", found.map((one) => `${one.function}: ${one.why}`), (number) => {
    boxes.forEach((box, at) => { box.hidden = at !== number; });
  });
  for (const one of found) {
    const box = document.createElement("div");
    place.append(box);
    boxes.push(box);
    oneCall(box, one);
  }
  press(0);
}

function oneCall(place, one) {
  const heading = document.createElement("h3");
  heading.textContent = `${one.function}, ${seconds(one.seconds)} from ${seconds(one.start_s)} on, on ${one.file}`;
  place.append(heading);
  const rows = one.ranks.map((rank) => String(rank.rank));
  const [unit, factor] = timeUnit(one.seconds);
  const left = leftRoom(rows);
  const frames = one.ranks.map((rank, row) => ({ value: [row, rank.begin / factor, rank.seconds / factor], rank }));
  const parts = one.ranks.flatMap((rank, row) => rank.parts.map((part) => ({ value: [row, part[1] / factor, part[2] / factor, part[0], part[3], part[4]] })));
  const rectangle = (api, high) => {
    const [x, y] = api.coord([api.value(1), api.value(0)]);
    const [wide, band] = api.size([api.value(2), 1]);
    return { x, y: y - (band * high) / 2, width: Math.max(wide, 0.6), height: band * high };
  };
  const words = (p) => {
    if (p.seriesType !== "custom") return "";
    if (p.data.rank) return `${NOUN} ${p.data.rank.rank}: ${seconds(p.data.rank.seconds)} in ${one.function}, ${seconds(p.data.rank.outside)} of it outside of POSIX`;
    const [row, begin, wide, kind, moved, offset] = p.value;
    const at = offset >= 0 ? ` at ${count(offset)}` : "";
    return `${NOUN} ${rows[row]}: ${PARTS[kind]}${moved ? ` ${bytes(moved)}` : ""}${at}\n${seconds(wide * factor)} from ${seconds(begin * factor)} on`;
  };
  const zoom = timeZoom();
  zoom[1].labelFormatter = (value) => `${tick(Number(value.toPrecision(4)))} ${unit}`;
  const used = PARTS.map((name, kind) => kind).filter((kind) => parts.some((part) => part.value[3] === kind));
  new Plot(place, {
    overTime: false, height: Math.min(700, 150 + rows.length * 42),
    label: `Bars: the POSIX calls inside of one ${one.function} of ${rows.length} ${NOUN}s over ${seconds(one.seconds)}`,
    option: () => ({
      grid: { left, right: 24, top: 36, bottom: 78 }, legend: { ...legend(), data: used.map((kind) => PARTS[kind]) },
      tooltip: { trigger: "item", renderMode: "richText", confine: true, backgroundColor: colour("page"), textStyle: { color: colour("text") }, formatter: words },
      xAxis: axis(`time since the first ${NOUN} called (${unit})`, { min: 0, max: one.seconds / factor, axisLabel: { ...axisLabels(), showMaxLabel: false } }), yAxis: rowAxis(NOUN, rows, left), dataZoom: zoom,
      series: [{
        type: "custom", name: "call", data: frames, clip: true, encode: { x: 1, y: 0 }, z: 1,
        renderItem: (_, api) => ({ type: "rect", shape: rectangle(api, 0.86), style: { fill: colour("box"), stroke: colour("text"), lineWidth: 1 } }),
      }, ...used.map((kind) => ({
        type: "custom", name: PARTS[kind], data: parts.filter((part) => part.value[3] === kind), clip: true, encode: { x: [1], y: 0 }, z: 2, itemStyle: { color: PART_COLOURS[kind] },
        // Kinds differ in height, too.
        renderItem: (_, api) => ({ type: "rect", shape: rectangle(api, [0.7, 0.7, 0.42, 0.42, 0.3][kind]), style: { fill: PART_COLOURS[kind] } }),
      }))],
    }),
  });
  const left_out = one.ranks.reduce((sum, rank) => sum + rank.left_out, 0);
  if (one.of_ranks > one.ranks.length) nothing(place, `${one.ranks.length} of ${count(one.of_ranks)} ${NOUN}s are shown: those with most POSIX calls.`);
  if (left_out) nothing(place, `${count(left_out)} of the shortest POSIX calls are not drawn; the table counts all.`);
  const table = document.createElement("div");
  table.className = "table";
  place.append(table);
  const columns = [[NOUN, "id"], ["in the call", "s"], ...used.flatMap((kind) => [[`in ${PARTS[kind]}`, "s"], [`${PARTS[kind]} calls`, "n"]]), ["written", "B"], ["read", "B"], ["outside of POSIX", "s"]];
  makeTable(table, {
    columns, left_out: 0,
    rows: one.ranks.map((rank) => [rank.rank, rank.seconds, ...used.flatMap((kind) => [rank.by_kind[kind], rank.calls_by_kind[kind]]), rank.bytes_by_kind[0], rank.bytes_by_kind[1], rank.outside]),
  });
}
