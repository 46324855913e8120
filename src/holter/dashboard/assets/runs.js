/** The list of runs: outcome and diagnosis of each, updated as they grow. */
import {formatNumber} from "./canvas.js";
import {ago, build, button, duration, fetchJson, link, numbers, outcomeKind, poll, tag} from "./page.js";
import {spark} from "./spark.js";

const main = document.getElementById("main");
const rows = new Map(); // run -> {element, version, chosen}
const filter = Object.assign(document.createElement("input"), {
  type: "search", placeholder: "Filter by name, outcome or rule", id: "filter",
});
filter.setAttribute("aria-label", "Filter runs");
const compare = button("Compare", () => {
  location.href = `/compare?runs=${chosen().join(",")}`;
}, "primary");
const count = build("span", "muted");
const body = build("tbody");
const empty = build("p", "muted");

function chosen() {
  return [...rows].filter(([, row]) => row.box.checked).map(([id]) => id);
}

function showChosen() {
  const number = chosen().length;
  compare.disabled = number < 2;
  compare.textContent = number < 2 ? "Compare" : `Compare ${number} runs`;
}

function cells(run, box) {
  if (run.state === undefined) {
    return [build("td", "", box), build("td", "", link(`/runs/${run.id}`, run.name)),
      build("td"), build("td", "muted", "checking …"), build("td"), build("td"), build("td")];
  }
  const running = run.status === "running";
  const named = link(`/runs/${run.id}`, run.name);
  named.title = run.name;
  const state = build("div", "", tag(run.error ? "unreadable" : run.state, outcomeKind(run)));
  const found = run.leading
    ? [build("div", "", run.cause), build("div", "muted", link(`/rules/${run.leading.rule}`, run.leading.rule),
        ` · ${run.leading.confidence}`)]
    : [build("div", "muted", run.error || run.remark)];
  const status = build("div", "", running ? build("span", "dot") : null, running ? "running" : run.status);
  const curve = numbers(run.curve.values);
  const last = curve.length ? formatNumber(curve[curve.length - 1]) : "";
  return [
    build("td", "", box),
    build("td", "name", named, build("div", "muted command-line", run.command.join(" "))),
    build("td", "curve", spark(run.curve.steps, curve), build("span", "muted number", last)),
    build("td", "", state, build("div", "muted", run.numbers)),
    build("td", "", ...found),
    build("td", "number", run.steps.toLocaleString("en-US"), build("div", "muted", duration(run.duration))),
    build("td", "", status, build("div", "muted", ago(run.written))),
  ];
}

function text(run) {
  return [run.name, run.state, run.cause, run.leading && run.leading.rule, run.status]
    .filter(Boolean).join(" ").toLowerCase();
}

function update(document_) {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const present = new Set();
  document_.runs.forEach((run, place) => {
    present.add(run.id);
    let row = rows.get(run.id);
    if (row === undefined) {
      const box = Object.assign(document.createElement("input"), {type: "checkbox"});
      box.setAttribute("aria-label", `Compare ${run.name}`);
      box.addEventListener("change", showChosen);
      row = {element: build("tr"), box, shown: ""};
      rows.set(run.id, row);
    }
    const shown = JSON.stringify([run, ago(run.written)]);
    if (row.shown !== shown) {
      row.shown = shown;
      row.element.replaceChildren(...cells(run, row.box));
    }
    row.element.hidden = !words.every((word) => text(run).includes(word));
    if (body.children[place] !== row.element) body.insertBefore(row.element, body.children[place] || null);
  });
  for (const [id, row] of rows) {
    if (!present.has(id)) {
      row.element.remove();
      rows.delete(id);
    }
  }
  const bad = document_.runs.filter((run) => run.bad).length;
  const running = document_.runs.filter((run) => run.status === "running").length;
  count.textContent = `${document_.runs.length} runs · ${running} running · ${bad} failed`;
  empty.textContent = document_.folders.length
    ? `There is no run in ${document_.folders.join(", ")} yet. Record one: holter run train.py`
    : "No folder was given: start `holter show` to see runs.";
  empty.hidden = document_.runs.length > 0;
  table.hidden = document_.runs.length === 0;
}

const head = ["", "Run", "Loss", "Outcome", "Diagnosis", "Steps", "Status"];
const table = build("div", "card scroller", build("table", "runs",
  build("thead", "", build("tr", "", ...head.map((name) => build("th", "", name)))), body));
main.append(build("div", "head", build("h1", "", "Runs"), count, build("span", "grow"), filter, compare), table, empty);
showChosen();
let latest = null;
filter.addEventListener("input", () => latest && update(latest));
poll(async () => {
  latest = (await fetchJson("/api/runs")).document;
  update(latest);
}, 1);
