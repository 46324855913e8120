/** The drawings of a run's page: their data, as the server or the file packs it, and their charts. */
import {
  bars, chartGroup, formatNumber, heatMap, layerMap, lineChart, matrix, opGraph, ridgeline,
} from "./charts.js";
import {make} from "./canvas.js";

const TYPES = {f32: Float32Array, f64: Float64Array, i32: Int32Array};

/** Return the bytes of all arrays: base64, then gzip. */
async function unpack(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** Return data with references to arrays and spelled numbers put back. */
function restored(value, bytes) {
  if (Array.isArray(value)) return value.map((item) => restored(item, bytes));
  if (value === null || typeof value !== "object") return value;
  if (value.array) return new TYPES[value.array](bytes, value.at, value.length);
  if (value.number) return {nan: NaN, inf: Infinity, "-inf": -Infinity}[value.number];
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, restored(item, bytes)]));
}

/** Ridgelines of one parameter, chosen from a list. */
function histograms(element, data) {
  const {names, shares, zeros, nonfinite, edges} = data;
  const bins = edges.length - 1;
  const times = data.steps.length;
  const tools = make("div", "chart-tools");
  const choice = make("select", "chart-choice");
  choice.setAttribute("aria-label", `parameter, ${data.label}`);
  names.forEach((name, n) => {
    const option = make("option", "", name);
    option.value = String(n);
    choice.append(option);
  });
  const told = make("span", "chart-told");
  tools.append(choice, told);
  const place = make("div");
  element.append(tools, place);
  const part = (n) => ({
    counts: shares.subarray(n * times * bins, (n + 1) * times * bins),
    label: `${data.label}, ${names[n]}`,
  });
  function tell(n) {
    const last = (n + 1) * times - 1;
    const percent = (values) => `${formatNumber(100 * values[last])} %`;
    told.textContent = `at the end: zeros ${percent(zeros)}, not finite ${percent(nonfinite)}`;
  }
  const first = names.length ? Math.floor((names.length - 1) / 2) : 0;
  const chart = ridgeline(place, {steps: Array.from(data.steps), edges, unit: data.unit, height: 260, ...part(first)});
  choice.value = String(first);
  tell(first);
  choice.addEventListener("change", () => {
    const n = Number(choice.value);
    chart.update(part(n));
    tell(n);
  });
}

const DRAW = {lines: lineChart, layers: layerMap, heat: heatMap, bars, matrix, graph: opGraph, histograms};

/** Return the drawings of a page: their list as JSON, and their arrays as base64 text. */
export async function unpacked(drawings, arrays) {
  const bytes = await unpack(arrays);
  return drawings.map(({kind, data}) => ({kind, data: restored(data, bytes)}));
}

/** Return the group of the charts over the steps of a run: they share cursor and zoom. */
export function stepGroup(steps) {
  return chartGroup(steps > 1 ? [0, steps] : null);
}

/** Draw into an element; return the chart, if it can be updated or destroyed. */
export function draw(place, {kind, data}, group) {
  return DRAW[kind](place, {...data, ...(data.own ? {} : {group})});
}
