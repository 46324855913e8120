/** The script of a report: decodes the data of the page and draws its charts. */
import {
  bars, chartGroup, formatNumber, heatMap, layerMap, lineChart, matrix, opGraph, ridgeline,
} from "./charts.js";
import {make} from "./canvas.js";

const TYPES = {f32: Float32Array, f64: Float64Array, i32: Int32Array};
const last = Number(document.documentElement.dataset.steps);
const steps = chartGroup(last > 1 ? [0, last] : null); // all charts over the steps of the run share cursor and zoom

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

function changeTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

/** Mark the section that is being read in the bar at the top. */
function followReading() {
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    for (const {target, isIntersecting} of entries) {
      if (!isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(target.id)?.setAttribute("aria-current", "true");
    }
  }, {rootMargin: "-20% 0px -70%"});
  for (const section of document.querySelectorAll("main > section")) seen.observe(section);
}

async function drawAll() {
  const drawings = JSON.parse(document.getElementById("drawings").textContent);
  const bytes = await unpack(document.getElementById("arrays").textContent);
  for (const place of document.querySelectorAll("[data-drawing]")) {
    const {kind, data} = drawings[Number(place.dataset.drawing)];
    DRAW[kind](place, {...restored(data, bytes), ...(data.own ? {} : {group: steps})});
  }
  document.documentElement.dataset.ready = "";
}

document.getElementById("theme").addEventListener("click", changeTheme);
followReading();
drawAll().catch((error) => {
  const note = make("p", "says caution", `The charts cannot be drawn in this browser: ${error.message}`);
  document.querySelector(".hero").append(note);
  throw error;
});
