// Tables that sort and filter. Texts enter as text, never as HTML.

const PAGE_ROWS = 100;

function makeTable(place, { columns, rows, left_out: leftOut }) {
  if (!rows.length) return nothing(place, "None.");
  const texts = columns.map(([, unit]) => unit === "text" || unit === "id");
  let shown = PAGE_ROWS;
  let sorted = -1;
  let falling = true;
  let order = rows;
  const bar = document.createElement("div");
  bar.className = "bar";
  const filter = document.createElement("input");
  filter.type = "search";
  filter.placeholder = "Filter";
  filter.setAttribute("aria-label", "Show rows that hold this text");
  const said = document.createElement("span");
  said.setAttribute("role", "status");
  bar.append(filter, said);
  const frame = document.createElement("div");
  frame.className = "rows";
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", "Table");
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  const body = table.createTBody();
  const cells = columns.map(([name], at) => {
    const cell = document.createElement("th");
    cell.scope = "col";
    if (columns[at][1] === "text") cell.className = "text";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", () => {
      falling = sorted === at ? !falling : !texts[at];
      sorted = at;
      sort();
    });
    cell.append(button);
    head.append(cell);
    return cell;
  });
  const more = document.createElement("button");
  more.type = "button";
  more.addEventListener("click", () => {
    shown += 4 * PAGE_ROWS;
    fill();
  });
  const sort = () => {
    const sign = falling ? -1 : 1;
    order = [...rows].sort((a, b) => sign * (typeof a[sorted] === "string" ? a[sorted].localeCompare(b[sorted], "en", { numeric: true }) : a[sorted] - b[sorted]));
    cells.forEach((cell, at) => {
      if (at === sorted) cell.setAttribute("aria-sort", falling ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    fill();
  };
  const fill = () => {
    const wanted = filter.value.toLowerCase();
    const kept = wanted ? order.filter((row) => row.some((value) => String(value).toLowerCase().includes(wanted))) : order;
    body.replaceChildren(...kept.slice(0, shown).map((row) => {
      const line = document.createElement("tr");
      row.forEach((value, at) => {
        const cell = line.insertCell();
        cell.textContent = worded(value, columns[at][1]);
        if (columns[at][1] === "text") cell.className = "text";
      });
      return line;
    }));
    more.hidden = kept.length <= shown;
    more.textContent = `Show more of ${count(kept.length)} rows`;
    const hidden = leftOut ? `, ${count(leftOut)} more are in report --json` : "";
    said.textContent = `${count(kept.length)} of ${count(rows.length)} rows${hidden}`;
  };
  filter.addEventListener("input", () => {
    shown = PAGE_ROWS;
    fill();
  });
  frame.append(table);
  place.append(bar, frame, more);
  fill();
}

function tableOf(name) {
  const place = document.querySelector(`[data-table="${name}"]`);
  if (model[name].rows.length) makeTable(place, model[name]);
  else missing(place, { sites: "Call sites were not recorded.", locks: "No lock was taken." }[name] ?? "None.");
}
