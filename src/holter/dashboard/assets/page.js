/** What all pages share: elements, requests, polling, numbers from JSON. */
import {make} from "./canvas.js";

/** Make an element with children: elements, or strings, which are always text. */
export function build(tag, className = "", ...children) {
  const element = make(tag, className);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Make a link; the address is built by us, the text may come from a run. */
export function link(address, text, className = "") {
  const element = make("a", className, text);
  element.href = address;
  return element;
}

/** Make a button that calls `action`. */
export function button(text, action, className = "") {
  const element = make("button", className, text);
  element.type = "button";
  element.addEventListener("click", action);
  return element;
}

/** Return the numbers of a JSON list: NaN and infinities arrive as strings, gaps as null. */
export function numbers(values) {
  return values.map((value) => (value === null ? null : Number(value)));
}

/** An answer that is an error; its message is a sentence for people. */
export class AnswerError extends Error {}

/** Fetch JSON; with the version of an earlier answer, return null where nothing is newer. */
export async function fetchJson(address, version = "") {
  const headers = version ? {"If-None-Match": `"${version}"`} : {};
  const answer = await fetch(address, {headers, cache: "no-store"});
  if (answer.status === 304) return null;
  const document = await answer.json();
  if (!answer.ok) throw new AnswerError(document.error || `The server answered ${answer.status}.`);
  return {document, version: (answer.headers.get("ETag") || "").replaceAll('"', "")};
}

/** Call `task` now and then again and again, less often if it takes long; rest while hidden. */
export function poll(task, seconds) {
  const live = document.getElementById("live");
  const turn = async () => {
    const began = performance.now();
    try {
      if (!document.hidden) {
        await task();
        live.textContent = "live";
        live.dataset.state = "on";
      }
    } catch (error) {
      live.textContent = error instanceof AnswerError ? error.message : "not connected";
      live.dataset.state = "off";
    }
    const taken = performance.now() - began;
    setTimeout(turn, Math.max(1000 * seconds, 4 * taken));
  };
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) live.textContent = "";
  });
  turn();
}

/** Return how long ago a moment was: `12 s ago`, `3 h ago`. */
export function ago(seconds) {
  const past = Math.max(0, Date.now() / 1000 - seconds);
  if (past < 90) return `${Math.round(past)} s ago`;
  if (past < 5400) return `${Math.round(past / 60)} min ago`;
  if (past < 129600) return `${Math.round(past / 3600)} h ago`;
  return new Date(1000 * seconds).toISOString().slice(0, 10);
}

/** Return a duration: `42 s`, `5 min`, `2.4 h`. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 90) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** Make a text in which words between backticks are code. */
export function withCode(tag, className, text) {
  const element = make(tag, className);
  text.split("`").forEach((part, place) => {
    if (part) element.append(place % 2 ? make("code", "", part) : part);
  });
  return element;
}

/** Make a command with a button that copies it, or selects it where the browser does not copy. */
export function command(text) {
  const code = make("code", "", text);
  const copy = button("Copy", async () => {
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } else {
      getSelection().selectAllChildren(code);
      copy.textContent = "Selected";
    }
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  }, "quiet");
  return build("div", "shell", code, copy);
}

/** Make the tag of an outcome or a severity. */
export function tag(text, kind) {
  return make("span", `tag ${kind}`, text);
}

/** Return the kind of tag that an outcome of a run has. */
export function outcomeKind(run) {
  if (run.error || run.bad) return "error";
  if (run.leading && run.leading.severity !== "info") return "warning";
  return run.state === "learned" ? "good" : "plain";
}
