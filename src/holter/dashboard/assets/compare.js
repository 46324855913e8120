/** Several runs on one axis. */
import {lineChart} from "./charts.js";
import {build, fetchJson, link, numbers, poll, withCode} from "./page.js";

const main = document.getElementById("main");
const query = new URLSearchParams(location.search);
const select = build("select");
select.id = "signal";
const doc = build("p", "muted");
const figure = build("div");
const legend = build("ul", "links");
let chart = null;
let signals = "";

main.append(
  build("div", "head", build("h1", "", "Compare runs"), build("span", "grow"), build("label", "", "Signal ", select)),
  build("section", "card", figure, doc),
  build("section", "card", build("h2", "", "Runs"), legend),
);

function showSignals(answer) {
  const names = JSON.stringify(answer.signals);
  if (names !== signals) {
    signals = names;
    select.replaceChildren(...answer.signals.map((signal) => {
      const option = build("option", "", signal.name);
      option.value = signal.name;
      return option;
    }));
  }
  if (answer.signal) select.value = answer.signal;
}

function show(answer) {
  showSignals(answer);
  const series = answer.series.map((each) => ({
    name: each.name, steps: each.steps, values: numbers(each.values),
  }));
  const data = {series, marks: [], unit: answer.unit, label: answer.signal || "", height: 420};
  if (chart === null) chart = lineChart(figure, data);
  else chart.update(data);
  const about = answer.signals.find((signal) => signal.name === answer.signal);
  doc.replaceChildren(...(about ? [withCode("span", "", about.doc)] : ["None of these runs has this signal."]));
  const ids = new Map(answer.series.map((each) => [each.id, each.name.split(" · ")[0]]));
  legend.replaceChildren(...[...ids].map(([id, name]) => build("li", "", link(`/runs/${id}`, name))));
}

async function load() {
  const address = new URLSearchParams({runs: query.get("runs") || "", signal: query.get("signal") || "loss"});
  show((await fetchJson(`/api/compare?${address}`)).document);
}

select.addEventListener("change", () => {
  query.set("signal", select.value);
  history.replaceState(null, "", `?${query}`);
  if (chart) {
    chart.destroy();
    chart = null;
    figure.replaceChildren();
  }
  load();
});
poll(load, 2);
