/** The diagnosis tree: questions, one at a time, ending at rules and the experiment to run. */
import {build, button, command, fetchJson, link, tag, withCode} from "./page.js";

/** Fill an element with the tree; the way taken is in the address after #. */
export async function showTree(place) {
  const tree = (await fetchJson("/api/playground/tree")).document;
  place.append(build("p", "lead", "The questions of an engineer who looks for the cause, in the order in which to ask them."));
  const way = build("div", "path");
  const box = build("section", "card");
  place.append(way, box);

  function ruleCard(name) {
    const rule = tree.rules[name];
    return build(
      "div", `finding ${rule.severity}`,
      build("div", "", link(`/rules/${name}`, name), " ", tag(rule.severity, rule.severity)),
      build("div", "", rule.title),
      withCode("div", "", `Fix: ${rule.fix}`),
      ...rule.confirm.slice(0, 1).map((text) => withCode("div", "muted", `Confirm: ${text}`)),
    );
  }

  function go(taken) {
    location.hash = taken.join("/");
  }

  function show() {
    const taken = location.hash.slice(1).split("/").filter((part) => /^\d+$/.test(part)).map(Number);
    const steps = [];
    let at = tree.root;
    let leaf = null;
    taken.forEach((place_, depth) => {
      const reply = at && tree.questions[at].replies[place_];
      if (!reply) return;
      steps.push(button(reply.text, () => go(taken.slice(0, depth + 1)), "quiet"));
      leaf = reply.to ? null : {reply, question: tree.questions[at]};
      at = reply.to || null;
    });
    way.replaceChildren(button("Start", () => go([])), ...steps.flatMap((step) => ["›", step]));
    if (leaf) {
      const test = leaf.question.command;
      box.replaceChildren(
        build("h2", "", leaf.reply.rules.length > 1 ? "Look for these, in this order" : "Look for this"),
        ...leaf.reply.rules.map(ruleCard),
        ...(test ? [build("h2", "", "Experiment"), command(test)] : []),
      );
      return;
    }
    const question = tree.questions[at];
    box.replaceChildren(
      build("h2", "", question.text),
      build("p", "muted", question.how),
      build("div", "replies", ...question.replies.map((reply, number) => button(reply.text, () => go([...taken, number])))),
      ...(question.command ? [build("p", "muted", "This answers it:"), command(question.command)] : []),
    );
  }

  window.addEventListener("hashchange", show);
  show();
}
