/** Controls of the playground, made from the options that the server describes. */
import {formatNumber} from "./canvas.js";
import {build} from "./page.js";

const POSITIONS = 200; // of a slider

function choice(option, value, change) {
  const select = build("select", "", ...option.words.map((word) => {
    const item = build("option", "", word);
    item.value = word;
    return item;
  }));
  select.value = value;
  select.addEventListener("change", () => change(select.value));
  return {input: select, shown: null};
}

function slider(option, value, change) {
  const input = Object.assign(document.createElement("input"), {type: "range", min: 0, max: POSITIONS, step: 1});
  const [low, high] = option.log ? [Math.log10(option.low), Math.log10(option.high)] : [option.low, option.high];
  const toValue = (position) => {
    const at = low + ((high - low) * position) / POSITIONS;
    const number = Number((option.log ? 10 ** at : at).toPrecision(2));
    return option.whole ? Math.round(number) : number;
  };
  const place = option.log ? Math.log10(value) : Number(value);
  input.value = Math.round((POSITIONS * (place - low)) / (high - low));
  const output = build("output", "", formatNumber(Number(value)));
  input.addEventListener("input", () => { output.textContent = formatNumber(toValue(Number(input.value))); });
  input.addEventListener("change", () => change(String(toValue(Number(input.value)))));
  return {input, shown: output};
}

/**
 * Make the controls for some options. Their values start from the address of the page, and go back
 * to it, so that a link leads to the same picture; `changed` is called with the query.
 */
export function controls(options, changed) {
  const query = new URLSearchParams(location.search);
  const box = build("form", "card controls");
  box.addEventListener("submit", (event) => event.preventDefault());
  for (const option of options) {
    const value = query.get(option.name) ?? option.default;
    const change = (next) => {
      query.set(option.name, next);
      history.replaceState(null, "", `?${query}`);
      changed(query);
    };
    const {input, shown} = option.kind === "choice" ? choice(option, value, change) : slider(option, value, change);
    input.id = `option-${option.name}`;
    const label = build("label", "", option.label, shown);
    label.htmlFor = input.id;
    box.append(build("div", "control", label, input, option.help ? build("small", "", option.help) : null));
  }
  return {element: box, query};
}

/** Call `task` with the newest query, one at a time; queries in between are left out. */
export function oneAtATime(task) {
  let waiting = null;
  let busy = false;
  return async (query) => {
    waiting = query;
    if (busy) return;
    busy = true;
    while (waiting !== null) {
      const next = waiting;
      waiting = null;
      await task(next);
    }
    busy = false;
  };
}
