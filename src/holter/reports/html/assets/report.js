/** The script of a report: draws the charts of the page from the data in it. */
import {make} from "./canvas.js";
import {draw, stepGroup, unpacked} from "./figures.js";

function changeTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

/** Mark the section that is being read in the bar at the top. */
function followReading() {
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    for (const {target, isIntersecting} of entries) {
      if (!isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(target.id)?.setAttribute("aria-current", "true");
    }
  }, {rootMargin: "-20% 0px -70%"});
  for (const section of document.querySelectorAll("main > section")) seen.observe(section);
}

async function drawAll() {
  const group = stepGroup(Number(document.documentElement.dataset.steps));
  const listed = JSON.parse(document.getElementById("drawings").textContent);
  const drawings = await unpacked(listed, document.getElementById("arrays").textContent);
  for (const place of document.querySelectorAll("[data-drawing]")) {
    draw(place, drawings[Number(place.dataset.drawing)], group);
  }
  document.documentElement.dataset.ready = "";
}

document.getElementById("theme").addEventListener("click", changeTheme);
followReading();
drawAll().catch((error) => {
  const note = make("p", "says caution", `The charts cannot be drawn in this browser: ${error.message}`);
  document.querySelector(".hero").append(note);
  throw error;
});
