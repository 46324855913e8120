/** Horizontal bars with intervals against a reference, and tables of numbers shaded by size. */
import {formatNumber, make} from "./canvas.js";

const BAR_DEFAULTS = {items: [], reference: null, label: "", unit: "", log: false};

/** Bars are elements of the page, so that names wrap and can be selected. */
export function bars(element, given) {
  let data = {...BAR_DEFAULTS, ...given};
  element.classList.add("chart");

  function build() {
    const list = make("div", "chart-bars");
    list.setAttribute("role", "list");
    list.setAttribute("aria-label", data.label);
    const {items, reference} = data;
    const numbers = items.flatMap(({value, low, high}) => [value, low, high])
      .concat(reference ? [reference.value] : []).filter((value) => Number.isFinite(value));
    const least = Math.min(...numbers.filter((value) => value > 0), Infinity);
    const log = data.log && least < Infinity;
    const floor = log ? least / 2 : Math.min(0, ...numbers);
    const top = Math.max(...numbers, floor + (log ? least : 1e-12));
    const place = (value) => {
      if (log) return (100 * Math.log(Math.max(value, floor) / floor)) / Math.log(top / floor);
      return (100 * (value - floor)) / (top - floor);
    };
    for (const item of items) list.append(bar(item, place, place(Math.max(floor, log ? floor : 0)), reference));
    const foot = make("div", "chart-bars-foot");
    if (reference) foot.append(make("span", "chart-bars-reference-key"), make("span", "", `${reference.text ?? "reference"} ${formatNumber(reference.value)}`));
    if (data.unit) foot.append(make("span", "chart-bars-unit", `${data.unit}${log ? ", log scale" : ""}`));
    element.replaceChildren(list, foot);
  }

  function bar({name, value, low, high, kind, text}, place, zero, reference) {
    const row = make("div", "chart-bar");
    row.setAttribute("role", "listitem");
    row.append(make("span", "chart-bar-name", name));
    const track = make("span", "chart-bar-track");
    if (Number.isFinite(value)) {
      const fill = make("span", "chart-bar-fill");
      if (kind) fill.dataset.kind = kind;
      fill.style.left = `${Math.min(zero, place(value))}%`;
      fill.style.width = `${Math.abs(place(value) - zero)}%`;
      track.append(fill);
    }
    if (Number.isFinite(low) && Number.isFinite(high)) {
      const whisker = make("span", "chart-bar-interval");
      whisker.style.left = `${place(low)}%`;
      whisker.style.width = `${Math.max(place(high) - place(low), 0.3)}%`;
      track.append(whisker);
    }
    if (reference && Number.isFinite(reference.value)) {
      const line = make("span", "chart-bar-reference");
      line.style.left = `${place(reference.value)}%`;
      track.append(line);
    }
    const shown = value === null || value === undefined ? "" : formatNumber(value);
    const spread = Number.isFinite(low) && Number.isFinite(high) ? ` (${formatNumber(low)} to ${formatNumber(high)})` : "";
    row.append(track, make("span", "chart-bar-value", text ?? shown));
    row.title = `${name}: ${text ?? shown}${spread}`;
    return row;
  }

  build();
  return {
    update(changes) {
      data = {...data, ...changes};
      build();
    },
    destroy: () => element.replaceChildren(),
  };
}

const MATRIX_DEFAULTS = {rows: [], columns: [], values: [], label: "", rowLabel: "", columnLabel: "", text: formatNumber};

/** A table of numbers with cells shaded by their share of the row, as a confusion matrix. */
export function matrix(element, given) {
  let data = {...MATRIX_DEFAULTS, ...given};
  element.classList.add("chart");

  function build() {
    const {rows, columns, values} = data;
    const table = make("table", "chart-matrix");
    table.setAttribute("aria-label", data.label);
    const head = make("tr");
    head.append(make("th", "chart-matrix-corner", `${data.rowLabel} \\ ${data.columnLabel}`));
    for (const column of columns) head.append(heading(column, "col"));
    table.append(head);
    rows.forEach((row, r) => {
      const line = make("tr");
      line.append(heading(row, "row"));
      let total = 0;
      columns.forEach((_, c) => (total += Math.max(0, values[r * columns.length + c] || 0)));
      columns.forEach((_, c) => {
        const value = values[r * columns.length + c];
        const cell = make("td", r === c ? "chart-matrix-diagonal" : "", data.text(value));
        const share = total ? Math.max(0, value) / total : 0;
        cell.style.setProperty("--share", `${Math.round(100 * share)}%`);
        if (share > 0.55) cell.dataset.dark = "";
        cell.title = `${data.rowLabel} ${row}, ${data.columnLabel} ${columns[c]}: ${formatNumber(value)} (${formatNumber(100 * share)} % of the row)`;
        line.append(cell);
      });
      table.append(line);
    });
    const scroller = make("div", "chart-matrix-scroller");
    scroller.append(table);
    element.replaceChildren(scroller);
  }

  function heading(text, scope) {
    const cell = make("th", "", String(text));
    cell.scope = scope;
    return cell;
  }

  build();
  return {
    update(changes) {
      data = {...data, ...changes};
      build();
    },
    destroy: () => element.replaceChildren(),
  };
}
