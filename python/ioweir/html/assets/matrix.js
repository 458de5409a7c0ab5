// Who waits for whom, as a matrix; and sizes of calls.

function matrixPlot(name, tableName, noneText) {
  const place = placeOf(name);
  const found = model[name];
  const table = document.querySelector(`[data-table="${tableName}"]`);
  if (found === null) return nothing(place, "Not looked into: the trace is too large to be held as a whole.");
  if (!(found.total > 0)) return missing(place, noneText);
  const { rows, matrix } = found;
  const [unit, factor] = timeUnit(Math.max(...matrix.flat()));
  const most = Math.max(...matrix.flat()) / factor;
  const data = matrix.flatMap((line, who) => line.map((value, whom) => [whom, who, value / factor])).filter((cell) => cell[2] > 0);
  const left = leftRoom(rows);
  new Plot(place, {
    overTime: false, height: 150 + rows.length * (rows.length > 16 ? 15 : 26),
    label: `Matrix: which ${NOUN} waited for which, ${seconds(found.total)} in all`,
    option: () => ({
      grid: { left, right: 130, top: 12, bottom: 56 },
      tooltip: { trigger: "item", renderMode: "richText", confine: true, backgroundColor: colour("page"), textStyle: { color: colour("text") },
        formatter: (p) => `${NOUN} ${rows[p.value[1]]} waited ${seconds(p.value[2] * factor)}\nfor ${NOUN} ${rows[p.value[0]]}` },
      xAxis: axis(`${NOUN} that was waited for`, { type: "category", data: rows, axisLabel: { color: colour("faint") } }),
      yAxis: rowAxis(`${NOUN} that waited`, rows, left),
      visualMap: { min: 0, max: most, calculable: false, orient: "vertical", right: 6, top: 12, text: [`${tick(Number(most.toPrecision(3)))} ${unit}`, `0 ${unit}`],
        textStyle: { color: colour("text") }, inRange: { color: RAMPS[isDark() ? "dark" : "light"] } },
      series: [{ type: "heatmap", data, itemStyle: { borderColor: colour("line"), borderWidth: rows.length > 24 ? 0 : 0.5 }, emphasis: { disabled: true } }],
    }),
  });
  makeTable(table, { columns: [[NOUN, "id"], ["others waited for it", "s"], ["it waited for others", "s"]], rows: found.causes, left_out: 0 });
}

function sizesPlot() {
  const place = placeOf("sizes");
  const found = model.sizes;
  if (!found.length) return missing(place, "No call moved bytes.");
  const bins = [...new Set(found.flatMap((one) => one.counts.map(([least]) => least)))].sort((a, b) => a - b);
  const all = [];
  for (let least = bins[0]; least <= bins[bins.length - 1]; least = least === 0 ? 1 : least * 2) all.push(least);
  new Plot(place, {
    overTime: false,
    label: `Bars: calls by bytes moved, of ${found.map((one) => `${one.layer} ${one.op}s`).join(", ")}`,
    option: () => ({
      grid: { left: 84, right: 24, top: 36, bottom: 56 }, legend: legend(),
      tooltip: { trigger: "axis", renderMode: "richText", confine: true, backgroundColor: colour("page"), textStyle: { color: colour("text") }, axisPointer: { type: "shadow" },
        formatter: (points) => [`${points[0].name} and more`, ...points.filter((p) => p.value).map((p) => `${p.seriesName}: ${count(p.value)} calls`)].join("\n") },
      xAxis: axis("bytes of one call (lower end of a power of two)", { type: "category", data: all.map(bytes), axisLabel: { color: colour("faint"), hideOverlap: true } }),
      yAxis: axis("calls (number, logarithmic)", { type: "log", min: 0.7, nameGap: 56, axisLabel: { color: colour("faint"), formatter: (value) => (value < 1 ? "" : count(value)) } }),
      series: found.map((one, number) => {
        const calls = new Map(one.counts);
        return { type: "bar", name: `${one.layer} ${one.op}s`, itemStyle: { color: SERIES[number % SERIES.length] }, emphasis: { disabled: true }, barMinHeight: 2,
          data: all.map((least) => calls.get(least) ?? null) };
      }),
    }),
  });
}
