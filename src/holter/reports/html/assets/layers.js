/** A heat map of layers over steps, with the curves of the rows that a reader chooses below it. */
import {chartGroup, make, missingIn} from "./canvas.js";
import {heatMap} from "./heat.js";
import {lineChart} from "./lines.js";

const MOST = 8; // curves at a time

/** Return the readings of one row: the smallest and the largest of each column. */
function curveOf({rows, steps, low, high}, row) {
  const missing = missingIn(high);
  const at = [];
  const values = [];
  for (let column = 0; column < steps.length; column += 1) {
    const cell = row * steps.length + column;
    if (missing(cell)) continue;
    if (low && low[cell] !== high[cell] && Number.isFinite(low[cell])) {
      at.push(steps[column]);
      values.push(low[cell]);
    }
    at.push(steps[column]);
    values.push(high[cell]);
  }
  return {name: rows[row], steps: at, values};
}

/**
 * `layerMap(element, {rows, steps, end, high, low?, chosen, marks, unit, log, domain, rowLabel,
 * label, group})`: `high` and `low` are rows x columns; `chosen` are the rows whose curves are shown.
 */
export function layerMap(element, given) {
  const data = given;
  const group = data.group ?? chartGroup();
  const columns = data.steps.length;
  let shown = data.rows.map((_, n) => n); // rows that pass the filter
  let chosen = [...(data.chosen ?? [])];

  const tools = make("div", "chart-tools");
  const filter = make("input", "chart-filter");
  Object.assign(filter, {type: "search", placeholder: `filter ${data.rows.length} ${data.rowLabel ?? "row"}s`});
  filter.setAttribute("aria-label", `filter rows, ${data.label}`);
  const hint = make("span", "chart-told", "click a row to add or remove its curve");
  if (data.rows.length > 8) tools.append(filter);
  tools.append(hint);
  const mapPlace = make("div");
  const linePlace = make("div");
  element.append(tools, mapPlace, linePlace);

  const map = heatMap(mapPlace, {
    rows: data.rows, steps: data.steps, end: data.end, values: data.high, unit: data.unit, log: data.log,
    domain: data.domain ?? undefined, rowLabel: data.rowLabel, label: data.label, marks: data.marks ?? [],
    group, onSelect: (row) => toggle(shown[row]),
  });
  const lines = lineChart(linePlace, {
    series: [], log: data.log, unit: data.unit, label: `${data.label}, chosen rows`, height: 200, group, ...curves(),
  });

  function curves() {
    const marks = (data.marks ?? []).filter(({row}) => chosen.includes(row));
    return {series: chosen.map((row) => curveOf(data, row)), marks};
  }

  function toggle(row) {
    chosen = chosen.includes(row) ? chosen.filter((other) => other !== row) : [...chosen, row].slice(-MOST);
    lines.update(curves());
  }

  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = data.rows.flatMap((name, n) => (words.every((word) => name.toLowerCase().includes(word)) ? [n] : []));
    const values = new Float32Array(shown.length * columns);
    shown.forEach((row, n) => values.set(data.high.subarray(row * columns, (row + 1) * columns), n * columns));
    const marks = (data.marks ?? []).flatMap((mark) => {
      const row = shown.indexOf(mark.row);
      return row < 0 ? [] : [{...mark, row}];
    });
    map.update({rows: shown.map((n) => data.rows[n]), values, marks, selected: null});
  });

  return {
    destroy() {
      map.destroy();
      lines.destroy();
      element.replaceChildren();
    },
  };
}
