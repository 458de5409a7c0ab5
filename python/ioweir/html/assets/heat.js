// Heat maps over time: pixels painted here, axes and zoom by ECharts. However many cells there are, one image is drawn.

class Heat {
  // `source(pixels, part)`: { bins, cells, rows } to paint where so much of the time is seen, or null. `palette()`: 32-bit pixels
  // by cell value. Time goes from `begin` for `span`, in the unit of the axis.
  constructor({ source, palette, fromBottom = false, rowSize = 1, last = false, begin = 0, span = SPAN }) {
    Object.assign(this, { source, palette, fromBottom, rowSize, last, begin, span });
    this.canvas = document.createElement("canvas");
  }

  series() {
    return {
      type: "custom", clip: true, silent: true, data: [[this.begin, 0]], encode: { x: 0, y: 1 }, progressive: 0,
      renderItem: (params, api) => this.item(params.coordSys, api),
    };
  }

  item(area, api) {
    const x0 = api.coord([this.begin, 0])[0];
    const perTime = (api.coord([this.begin + this.span, 0])[0] - x0) / this.span;
    const y0 = api.coord([this.begin, 0])[1];
    const perRow = this.fromBottom ? y0 - api.coord([this.begin, this.rowSize])[1] : api.size([0, 1])[1];
    const top = this.fromBottom ? y0 : y0 - perRow / 2;
    this.paint(area, x0, perTime, top, perRow);
    return { type: "image", style: { image: this.canvas, x: area.x, y: area.y, width: area.width, height: area.height } };
  }

  paint(area, x0, perTime, top, perRow) {
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    const wide = Math.max(1, Math.round(area.width * scale));
    const high = Math.max(1, Math.round(area.height * scale));
    this.canvas.width = wide;
    this.canvas.height = high;
    const part = area.width / (perTime * this.span);
    const level = this.source(wide, part);
    if (level === null) return;
    const context = this.canvas.getContext("2d");
    const image = context.createImageData(wide, high);
    const pixels = new Uint32Array(image.data.buffer);
    const palette = this.palette();
    // Bin edges of each column of pixels.
    const perPixel = level.bins / (perTime * this.span * scale);
    const first = ((area.x - x0) / (perTime * this.span)) * level.bins;
    const edges = new Int32Array(wide + 1);
    for (let x = 0; x <= wide; x += 1) edges[x] = Math.min(level.bins, Math.max(0, Math.floor(first + x * perPixel)));
    let painted = -1;
    let from = 0;
    for (let y = 0; y < high; y += 1) {
      const inside = area.y + (y + 0.5) / scale;
      const row = Math.floor(this.fromBottom ? (top - inside) / perRow : (inside - top) / perRow);
      if (row < 0 || row >= level.rows) continue;
      if (row === painted) {
        pixels.copyWithin(y * wide, from, from + wide);
      } else {
        from = y * wide;
        this.line(pixels, from, level, row * level.bins, edges, palette);
        painted = row;
      }
    }
    context.putImageData(image, 0, 0);
  }

  // One row: of several bins in a pixel the largest value, or the last that is any (`last`).
  line(pixels, at, level, base, edges, palette) {
    const { cells, bins } = level;
    for (let x = 0; x < edges.length - 1; x += 1) {
      const low = edges[x];
      const high = Math.min(bins, Math.max(edges[x + 1], low + 1));
      let value = 0;
      for (let bin = low; bin < high; bin += 1) {
        const here = cells[base + bin];
        if (this.last ? here > 0 : here > value) value = here;
      }
      pixels[at + x] = palette[value];
    }
  }
}

// The legend of a ramp: from nothing to the most.
function rampScale(place, most, unit, power) {
  const box = document.createElement("div");
  box.className = "scale";
  place.append(box);
  return (text) => {
    box.replaceChildren();
    const bar = document.createElement("span");
    bar.className = "bar";
    bar.style.background = `linear-gradient(to right, ${RAMPS[isDark() ? "dark" : "light"].join(", ")})`;
    const middle = power() === 2 ? ` (in the middle ${worded(most() / 4, unit())})` : "";
    box.append("0", bar, `${worded(most(), unit())}${middle}${text ? `: ${text}` : ""}`);
  };
}
