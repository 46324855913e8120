/** The frame of every page: the theme, and alerts of all runs that are shown. */
import {build, button, fetchJson, link, tag} from "./page.js";

const root = document.documentElement;
const themes = ["auto", "light", "dark"];

function useTheme(name) {
  if (name === "auto") delete root.dataset.theme;
  else root.dataset.theme = name;
  localStorage.setItem("holter-theme", name);
  document.getElementById("theme").textContent = `Theme: ${name}`;
}

function nextTheme() {
  const now = localStorage.getItem("holter-theme") || "auto";
  useTheme(themes[(themes.indexOf(now) + 1) % themes.length]);
}

/** Show findings that appeared since the page was opened, until they are closed. */
export function showAlerts(alerts) {
  const box = document.getElementById("alerts");
  const seen = Number(sessionStorage.getItem("holter-alert") || 0);
  for (const alert of alerts.filter((each) => each.number > seen).reverse()) {
    const card = build(
      "div",
      `alert ${alert.severity}`,
      build("div", "alert-head", tag(alert.severity, alert.severity), link(`/runs/${alert.id}`, alert.name)),
      build("p", "", alert.summary),
      build("p", "muted", link(`/rules/${alert.rule}`, alert.rule), ` · since step ${alert.onset}`),
    );
    card.append(button("×", () => card.remove(), "close"));
    card.lastChild.setAttribute("aria-label", "Close");
    box.append(card);
    while (box.children.length > 4) box.firstChild.remove();
  }
  if (alerts.length) sessionStorage.setItem("holter-alert", String(alerts[0].number));
}

async function watchAlerts() {
  try {
    if (!document.hidden) showAlerts((await fetchJson("/api/alerts")).document);
  } catch {
    // The page says by itself that it is not connected.
  }
  setTimeout(watchAlerts, 2000);
}

useTheme(localStorage.getItem("holter-theme") || "auto");
document.getElementById("theme").addEventListener("click", nextTheme);
if (location.pathname === "/" || location.pathname.startsWith("/runs")) watchAlerts();
