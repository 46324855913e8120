/** Learning rates: the range test on a network, and schedules. */
import {lineChart} from "./charts.js";
import {controls, oneAtATime} from "./controls.js";
import {build, command, fetchJson, numbers} from "./page.js";

function table(result) {
  return build(
    "div", "", build("h2", "", result.title),
    build("table", "", build("thead", "", build("tr", "", ...result.columns.map((name) => build("th", "", name)))),
      build("tbody", "", ...result.rows.map((row) => build("tr", "", ...row.map((cell) => build("td", "number", cell)))))),
    ...result.notes.map((note) => build("p", "muted", note)),
  );
}

/** The learning-rate range test, run on the network that the controls describe. */
export async function showRates(place) {
  const options = (await fetchJson("/api/playground/options")).document.network;
  const names = ["lr", "activation", "init", "depth", "norm", "residual", "optimizer"];
  const figure = build("div");
  const tables = build("section", "card", build("p", "muted", "testing …"));
  const results = build("div", "results", build("section", "card", build("h2", "", "Loss by learning rate"), figure), tables);
  let chart = null;
  const test = oneAtATime(async (query) => {
    results.classList.add("busy");
    results.setAttribute("aria-busy", "true");
    try {
      const {curve, tables: found} = (await fetchJson(`/api/playground/rates?${query}`)).document;
      if (chart) chart.destroy();
      figure.replaceChildren();
      chart = null;
      if (curve !== null) {
        const span = curve.interval && numbers(curve.interval);
        chart = lineChart(figure, {
          series: [{name: "loss of held-out batches", steps: numbers(curve.rates), values: numbers(curve.losses)}],
          marks: span ? [
            {from: span[0], to: span[2], kind: "info", text: "at least 95 % of the best gain"},
            {from: span[1], to: span[1], kind: "onset", text: "suggested rate"},
          ] : [],
          xLog: true, xLabel: "learning rate", label: "loss by learning rate", height: 320,
        });
      }
      tables.replaceChildren(...found.map(table));
    } catch (error) {
      tables.replaceChildren(build("p", "", error.message));
    }
    results.classList.remove("busy");
    results.setAttribute("aria-busy", "false");
  });
  const made = controls(names.map((name) => options.find((option) => option.name === name)), test);
  place.append(
    build("p", "lead", "The rate rises at every step until the loss diverges; short trainings then confirm the suggestion."),
    build("div", "bench", made.element, results),
  );
  tables.after(build("section", "card", build("h2", "", "On your own training"), command("holter try lr-range train.py")));
  test(made.query);
}

/** Schedules, drawn before they are used. */
export async function showSchedule(place) {
  const options = (await fetchJson("/api/playground/options")).document.schedule;
  const figure = build("div");
  const code = build("pre");
  const mean = build("p", "muted");
  let chart = null;
  const draw = oneAtATime(async (query) => {
    try {
      const answer = (await fetchJson(`/api/playground/schedule?${query}`)).document;
      const data = {
        series: [{name: "learning rate", steps: answer.steps, values: numbers(answer.rates)}],
        marks: [], label: "learning rate by step", height: 320,
      };
      if (chart) chart.update(data);
      else chart = lineChart(figure, data);
      mean.textContent = `mean rate ${answer.mean.toPrecision(3)}`;
      code.replaceChildren(build("code", "", answer.code));
    } catch (error) {
      code.textContent = error.message;
    }
  });
  const made = controls(options, draw);
  place.append(
    build("p", "lead", "Linear warm-up with cosine decay, and one-cycle, as holter.warmup_cosine and holter.one_cycle make them."),
    build("div", "bench", made.element, build("div", "results", build("section", "card", figure, mean), build("section", "card", build("h2", "", "Code"), code))),
  );
  draw(made.query);
}
