// What the page is drawn from: the JSON element, and the packed arrays in it (ioweir.html.packing).

const model = JSON.parse(document.getElementById("data").textContent);

// An array that Python packed: base64 of zlib's format. Decompressed off this thread.
async function unpacked(text, type) {
  const letters = atob(text);
  const packed = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at += 1) packed[at] = letters.charCodeAt(at);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new type(await new Response(stream).arrayBuffer());
}

// A heat map's levels, each unpacked when it is first looked at; `changed` is called when one has come.
class Levels {
  constructor(grid, span, changed) {
    this.grid = grid;
    this.rows = grid.rows;
    this.span = span;
    this.changed = changed;
    this.cells = grid.levels.map(() => null);
    this.asked = grid.levels.map(() => false);
  }

  // The coarsest level that has `wanted` bins in the part of the time that is seen, as far as it is there already.
  of(wanted, part) {
    const levels = this.grid.levels;
    let best = levels.findIndex((level) => level.bins * part >= wanted);
    if (best < 0) best = levels.length - 1;
    this.ask(best);
    for (let at = best; at >= 0; at -= 1) if (this.cells[at]) return { bins: levels[at].bins, cells: this.cells[at] };
    return null;
  }

  async ask(at) {
    if (at < 0 || this.asked[at]) return;
    this.asked[at] = true;
    if (at > 0) this.ask(0);
    this.cells[at] = await unpacked(this.grid.levels[at].data, Uint8Array);
    this.changed();
  }

  value(step) {
    return this.grid.most * (step / 255) ** this.grid.power;
  }
}
