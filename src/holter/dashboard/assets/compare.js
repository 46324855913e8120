/** Several runs on one axis. */
import {lineChart} from "./charts.js";
import {build, fetchJson, link, numbers, outcomeKind, poll, tag, withCode} from "./page.js";

const main = document.getElementById("main");
const query = new URLSearchParams(location.search);
const select = build("select");
select.id = "signal";
const doc = build("p", "muted");
const figure = build("div");
const body = build("tbody");
const heads = ["Run", "Outcome", "Numbers", "Diagnosis", "Steps"].map((name) => build("th", "", name));
let chart = null;
let version = "";
let signals = "";

main.append(
  build("div", "head", build("h1", "", "Compare runs"), build("span", "grow"), build("label", "", "Signal ", select)),
  build("section", "card", figure, doc),
  build("section", "card scroller", build("table", "", build("thead", "", build("tr", "", ...heads)), body)),
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
  body.replaceChildren(...answer.runs.map((run) => build(
    "tr", "",
    build("td", "name", link(`/runs/${run.id}`, run.name)),
    build("td", "", run.state === undefined ? "checking …" : tag(run.state, outcomeKind(run))),
    build("td", "", run.numbers || ""),
    build("td", "", run.leading ? link(`/rules/${run.leading.rule}`, run.leading.rule) : run.remark || ""),
    build("td", "number", run.steps === undefined ? "" : run.steps.toLocaleString("en-US")),
  )));
}

async function load() {
  const address = new URLSearchParams({runs: query.get("runs") || "", signal: query.get("signal") || "loss"});
  const answer = await fetchJson(`/api/compare?${address}`, version);
  if (answer === null) return;
  show(answer.document);
  version = answer.version;
}

select.addEventListener("change", () => {
  query.set("signal", select.value);
  version = "";
  history.replaceState(null, "", `?${query}`);
  if (chart) {
    chart.destroy();
    chart = null;
    figure.replaceChildren();
  }
  load();
});
poll(load, 2);
