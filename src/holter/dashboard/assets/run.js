/** The page of one run: the sections of the report, updated in place while the run grows. */
import {draw, stepGroup, unpacked} from "./figures.js";
import {build, button, command, fetchJson, link, outcomeKind, poll, tag} from "./page.js";

// What a chart is given again; the rest (log axis, smoothing, chosen rows) is the reader's.
const UPDATED = {
  lines: ["series", "marks", "references"],
  heat: ["rows", "steps", "end", "values", "marks"],
  bars: ["items", "reference"],
};
const id = location.pathname.split("/")[2];
const main = document.getElementById("main");
const sections = document.getElementById("sections");
const named = document.getElementById("run-name");
const dialog = document.getElementById("experiments");
const charts = new Map(); // the element of a drawing -> {kind, chart}
const sources = new Map(); // section -> its HTML as it came
const group = stepGroup(0);
let version = "";
let rules = new Set();

const keyOf = (section, place) => section.id || section.tagName + place;

/** Return the drawings of a section with what tells them apart. */
function places(section) {
  return [...section.querySelectorAll("[data-drawing]")].map((place) => {
    const figure = place.parentElement;
    const caption = figure.querySelector("figcaption") ?? figure.previousElementSibling; // of a folded one
    return {place, key: `${place.dataset.kind} ${caption ? caption.textContent : ""}`};
  });
}

function drawAgain(place, drawing) {
  const known = charts.get(place);
  const keys = known && known.kind === drawing.kind && known.chart && known.chart.update && UPDATED[drawing.kind];
  if (keys) {
    known.chart.update(Object.fromEntries(keys.map((key) => [key, drawing.data[key]])));
    return;
  }
  if (known && place.matches(":hover, :focus-within")) return; // somebody is reading it
  if (known && known.chart) known.chart.destroy();
  place.replaceChildren();
  charts.set(place, {kind: drawing.kind, chart: draw(place, drawing, group)});
}

/** Put the new section in the place of the old one, with the charts that both have. */
function exchange(old, fresh, drawings) {
  const kept = old ? places(old) : [];
  const open = new Set([...(old ? old.querySelectorAll("details[open] > summary") : [])].map((each) => each.textContent));
  for (const summary of fresh.querySelectorAll("details > summary")) {
    if (open.has(summary.textContent)) summary.parentElement.open = true;
  }
  const due = places(fresh).map(({place, key}) => {
    const drawing = drawings[Number(place.dataset.drawing)];
    const match = kept.findIndex((each) => each.key === key);
    if (match < 0) return [place, drawing];
    const [{place: before}] = kept.splice(match, 1);
    before.dataset.drawing = place.dataset.drawing;
    place.replaceWith(before);
    return [before, drawing];
  });
  for (const {place} of kept) {
    charts.get(place)?.chart?.destroy?.();
    charts.delete(place);
  }
  linkRules(fresh);
  return due;
}

/** Turn the names of rules into links to their pages. */
function linkRules(section) {
  for (const element of section.querySelectorAll(".rule, .pairs dt")) {
    const [name, ...rest] = element.textContent.split(" · ");
    if (rules.has(name)) {
      element.replaceChildren(link(`/rules/${name}`, name), rest.length ? ` · ${rest.join(" · ")}` : "");
    }
  }
}

function showSections(answer, drawings) {
  const parsed = new DOMParser().parseFromString(answer.main, "text/html").body.firstElementChild;
  const before = new Map([...main.children].map((section, place) => [keyOf(section, place), section]));
  const focused = document.activeElement;
  const due = [];
  const shown = [...parsed.children].map((fresh, place) => {
    const key = keyOf(fresh, place);
    const source = fresh.outerHTML;
    const old = before.get(key);
    if (old && sources.get(key) === source) {
      due.push(...places(old).map(({place: spot}) => [spot, drawings[Number(spot.dataset.drawing)]]));
      return old;
    }
    sources.set(key, source);
    due.push(...exchange(old, fresh, drawings));
    return fresh;
  });
  const now = [...main.children];
  if (shown.length !== now.length || shown.some((section, place) => section !== now[place])) {
    main.replaceChildren(...shown);
    if (focused && focused !== document.activeElement && main.contains(focused)) focused.focus({preventScroll: true});
  }
  for (const [place, drawing] of due) drawAgain(place, drawing);
}

function showLinks(links) {
  const text = JSON.stringify(links);
  if (sections.dataset.shown === text) return;
  sections.dataset.shown = text;
  sections.replaceChildren(...links.map(([name, title]) => link(`#${name}`, title)));
}

function showExperiments({commands, folder}) {
  dialog.replaceChildren(
    build("h2", "", "Next experiment"),
    ...(commands.length ? [] : [build("p", "", "The script of this run is not known.")]),
    ...(folder && commands.length ? [build("p", "muted", "in the folder of the script:"), command(folder)] : []),
    ...commands.flatMap((each) => [build("p", "muted", each.why), command(each.command)]),
    button("Close", () => dialog.close()),
  );
}

async function load() {
  const answer = await fetchJson(`/api/runs/${id}/report`, version);
  if (answer === null) return;
  const found = answer.document;
  rules = new Set(found.rules);
  document.title = `${found.run.state} · ${found.run.name} · holter`;
  named.replaceChildren(found.run.name, " ", tag(found.run.status || "unknown", found.run.status === "running" ? "good" : "plain"));
  named.dataset.kind = outcomeKind(found.run);
  group.full = found.steps > 1 ? [0, found.steps] : null;
  document.documentElement.dataset.steps = found.steps;
  showLinks(found.links);
  showSections(found, await unpacked(found.drawings, found.arrays));
  if (!dialog.open) showExperiments(found.next);
  version = answer.version;
  document.documentElement.dataset.ready = "";
}

document.getElementById("next").addEventListener("click", () => dialog.showModal());
poll(load, 1);
