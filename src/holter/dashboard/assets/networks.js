/** Networks that are trained as the controls say: gradients, activations and weights. */
import {heatMap, lineChart, ridgeline} from "./charts.js";
import {controls, oneAtATime} from "./controls.js";
import {build, fetchJson, link, numbers, tag, withCode} from "./page.js";

const rows = (heat) => heat.values.map(numbers);

function panel(title, text) {
  const figure = build("div");
  const element = build("section", "card", build("h2", "", title), figure, build("p", "muted", text));
  return {element, figure};
}

/** Return a function that draws into a panel anew; a panel without data is hidden. */
function drawn(made, draw) {
  let chart = null;
  return (answer) => {
    if (chart) chart.destroy();
    made.figure.replaceChildren();
    chart = draw(made.figure, answer);
    made.element.hidden = chart === null;
  };
}

function asHeat(figure, heat, more) {
  if (heat === null) return null;
  return heatMap(figure, {
    rows: heat.rows, steps: heat.steps, end: heat.steps[heat.steps.length - 1] + 1,
    values: rows(heat).flat(), rowLabel: "layer", height: Math.max(160, 22 * heat.rows.length + 60), ...more,
  });
}

/** Draw the first and the last reading of each layer over depth. */
function asProfile(figure, heat, more) {
  if (heat === null) return null;
  const table = rows(heat);
  const layers = heat.rows.map((_, place) => place + 1);
  const at = (pick) => table.map((row) => pick(row.filter((value) => value !== null)));
  const series = [
    {name: "first step", steps: layers, values: at((row) => row[0])},
    {name: "last step", steps: layers, values: at((row) => row[row.length - 1])},
  ];
  return lineChart(figure, {series, marks: [], xLabel: "layer, from the input", log: true, points: true, height: 260, ...more});
}

function lossPanel() {
  const made = panel("Training loss", "Ten classes; guessing gives 2.30.");
  return {...made, show: drawn(made, (figure, answer) => lineChart(figure, {
    series: [{name: "training", steps: answer.loss.steps, values: numbers(answer.loss.values)}],
    marks: answer.findings.slice(0, 1).map((found) => ({
      from: found.onset, to: found.onset, kind: "onset", text: found.rule,
    })),
    references: [{value: Math.log(10), text: "guessing"}], label: "training loss", height: 220,
  }))};
}

function verdict() {
  const element = build("section", "card verdict", build("p", "muted", "training …"));
  const show = (answer) => {
    const kind = answer.outcome.bad ? "error" : answer.findings.length ? "warning" : "good";
    element.replaceChildren(
      build("p", "", tag(answer.outcome.state, kind), " ", answer.outcome.numbers),
      ...answer.findings.slice(0, 3).map((found) => build(
        "div", `finding ${found.severity}`,
        build("div", "", link(`/rules/${found.rule}`, found.rule), ` · ${found.confidence}`),
        build("div", "", found.summary),
        withCode("div", "muted", `Fix: ${found.fix}`),
      )),
    );
  };
  return {element, show};
}

/** Fill a place with controls and panels; each panel has `element` and `show(answer)`. */
async function bench(place, lead, names, panels) {
  const said = verdict();
  const options = (await fetchJson("/api/playground/options")).document.network;
  const grid = build("div", "panels", ...panels.map((made) => made.element));
  const results = build("div", "results", said.element, grid);
  const train = oneAtATime(async (query) => {
    results.classList.add("busy");
    results.setAttribute("aria-busy", "true");
    try {
      const answer = (await fetchJson(`/api/playground/network?${query}`)).document;
      said.show(answer);
      for (const made of panels) made.show(answer);
    } catch (error) {
      said.element.replaceChildren(build("p", "", error.message));
    }
    results.classList.remove("busy");
    results.setAttribute("aria-busy", "false");
  });
  const chosen = names.map((name) => options.find((option) => option.name === name));
  const made = controls(chosen, train);
  place.append(build("p", "lead", lead), build("div", "bench", made.element, results));
  train(made.query);
}

/** How gradients and activations change with depth. */
export function showGradients(place) {
  const profile = panel("Gradient norm by layer", "A healthy network keeps it within a factor of about ten.");
  const spread = panel("Activation spread by layer", "Standard deviation of what each activation and the head return.");
  const over = panel("Gradient norm over time", "One row for each weight matrix.");
  return bench(
    place,
    "Each network is trained by PyTorch on this machine, recorded and checked by the same rules as a run.",
    ["activation", "init", "depth", "norm", "residual", "optimizer", "lr", "steps"],
    [
      {...profile, show: drawn(profile, (figure, answer) => asProfile(figure, answer.gradients, {label: "gradient norm by layer"}))},
      {...spread, show: drawn(spread, (figure, answer) => asProfile(figure, answer.spread, {label: "activation spread by layer"}))},
      {...over, show: drawn(over, (figure, answer) => asHeat(figure, answer.gradients, {label: "gradient norm over time"}))},
      lossPanel(),
    ],
  );
}

/** Which units are dead or saturated, layer by layer and step by step. */
export function showActivations(place) {
  const dead = panel("Dead units", "Share of units that return zero for every sample of a window; ReLU only.");
  const saturated = panel("Saturated units", "Share of outputs at the flat ends of sigmoid or tanh.");
  const spread = panel("Activation spread over time", "Standard deviation of what each activation and the head return.");
  const share = {log: false, domain: [0, 1], unit: "share"};
  return bench(
    place,
    "A ReLU that is zero for every sample gets no gradient: it stays dead. Lower the initial bias, or raise the learning rate.",
    ["activation", "bias", "lr", "init", "depth", "norm", "residual", "optimizer", "steps"],
    [
      {...dead, show: drawn(dead, (figure, answer) => asHeat(figure, answer.dead, {label: "dead units", ...share}))},
      {...saturated, show: drawn(saturated, (figure, answer) => asHeat(figure, answer.saturated, {label: "saturated units", ...share}))},
      {...spread, show: drawn(spread, (figure, answer) => asHeat(figure, answer.spread, {label: "activation spread"}))},
      lossPanel(),
    ],
  );
}

/** How the weights of a layer are distributed, and how they move. */
export function showWeights(place) {
  const distribution = panel("Distribution of the weights", "Each ridge is a moment of the training, the first at the top.");
  const norms = panel("Weight norm over time", "One row for each weight matrix.");
  const updates = panel("Relative update", "Change of a weight matrix in a step, over its norm; healthy: about 0.001.");
  const layer = build("select");
  layer.setAttribute("aria-label", "Layer");
  layer.id = "layer";
  let last = null;
  const draw = drawn(distribution, (figure, answer) => {
    const chosen = answer.distribution[Number(layer.value) || 0];
    return ridgeline(figure, {
      steps: chosen.steps, edges: numbers(chosen.edges), counts: chosen.counts.flat(),
      label: "distribution of the weights", unit: "weight", height: 380,
    });
  });
  distribution.element.firstChild.after(layer);
  layer.addEventListener("change", () => last && draw(last));
  const show = (answer) => {
    last = answer;
    const kept = layer.value;
    layer.replaceChildren(...answer.layers.map((name, place_) => {
      const option = build("option", "", name);
      option.value = String(place_);
      return option;
    }));
    if (Number(kept) < answer.layers.length && kept) layer.value = kept;
    draw(answer);
  };
  return bench(
    place,
    "Initialisation decides where the weights start, learning rate and weight decay where they go.",
    ["init", "decay", "lr", "optimizer", "activation", "depth", "norm", "steps"],
    [
      {...distribution, show},
      {...norms, show: drawn(norms, (figure, answer) => asHeat(figure, answer.norms, {label: "weight norm"}))},
      {...updates, show: drawn(updates, (figure, answer) => asHeat(figure, answer.updates, {label: "relative update"}))},
      lossPanel(),
    ],
  );
}
