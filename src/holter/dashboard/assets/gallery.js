/** The gallery: shapes of loss curves, from recorded trainings, each with its diagnosis. */
import {lineChart} from "./charts.js";
import {build, fetchJson, link, numbers, tag, withCode} from "./page.js";

function curve(name, series, color, more = {}) {
  return {name, steps: series.steps, values: numbers(series.values), colorIndex: color, ...more};
}

function card(picture) {
  const figure = build("div");
  const series = [curve("training", picture.train, 0)];
  if (picture.validation) series.push(curve("validation", picture.validation, 1));
  series.push(curve("after the fix", picture.twin, 2, {faint: true}));
  const element = build(
    "section",
    "card",
    build("h2", "", picture.shape),
    figure,
    build("p", "story", tag(picture.state, picture.bad ? "error" : "warning"), " ", withCode("span", "", picture.story)),
    build("p", "", link(`/rules/${picture.leading}`, picture.leading), `: ${picture.summary}`),
    withCode("p", "muted", `Fix: ${picture.fix}`),
  );
  return {element, draw: () => lineChart(figure, {
    series, marks: [], label: picture.shape, height: 170, controls: false,
  })};
}

/** Fill an element with the gallery. */
export async function showGallery(place) {
  place.append(build("p", "lead", "Recorded trainings, each with one mistake, beside the same training without it."));
  const grid = build("div", "gallery");
  place.append(grid);
  for (const picture of (await fetchJson("/api/playground/gallery")).document) {
    const made = card(picture);
    grid.append(made.element);
    made.draw();
  }
}
