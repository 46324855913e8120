/** The playground: which part is shown, by its address. */
import {build, link} from "./page.js";
import {showGallery} from "./gallery.js";
import {showActivations, showGradients, showWeights} from "./networks.js";
import {showRates, showSchedule} from "./rates.js";
import {showTree} from "./tree.js";

const PARTS = [
  ["gallery", "Loss curves", showGallery],
  ["gradients", "Gradient health", showGradients],
  ["activations", "Activation flow", showActivations],
  ["weights", "Weight distributions", showWeights],
  ["rates", "Learning-rate range", showRates],
  ["schedule", "Schedules", showSchedule],
  ["tree", "Diagnosis tree", showTree],
];

const main = document.getElementById("main");
const name = location.pathname.split("/")[2] || "gallery";
const tabs = build("nav", "tabs");
tabs.setAttribute("aria-label", "Parts of the playground");
for (const [part, title] of PARTS) {
  const tab = link(`/playground/${part}`, title);
  if (part === name) tab.setAttribute("aria-current", "page");
  tabs.append(tab);
}
const [, title, show] = PARTS.find(([part]) => part === name);
const place = build("div");
main.append(tabs, build("h1", "", title), place);
show(place);
