/** Ridgelines: a histogram for each of some steps, one behind the other, the first at the back. */
import {fitText, formatNumber, formatStep, linearTicks, logTicks, make, scale, surface, tooltip} from "./canvas.js";

const DEFAULTS = {steps: [], edges: [], counts: [], label: "", unit: "", log: true, height: 260};

export function ridgeline(element, given) {
  let data = {...DEFAULTS, ...given};
  let view = null;
  let chosen = null;
  let bin = null;

  element.classList.add("chart");
  const plot = make("div", "chart-plot");
  element.replaceChildren(plot);
  const face = surface(plot, data.height, data.label, {draw, point: () => {}});
  const tip = tooltip(plot);
  const {canvas} = face;

  function draw(context, width, height, theme) {
    const {steps, edges, counts} = data;
    const bins = edges.length - 1;
    const left = 58;
    const right = width - 12;
    const bottom = height - 24;
    const rise = Math.min(70, height * 0.3);
    const top = rise + 12;
    context.fillStyle = theme.muted;
    if (!steps.length || bins < 1) {
      context.textAlign = "center";
      context.fillText("no readings", width / 2, height / 2);
      return;
    }
    const x = scale(edges[0], edges[bins], left, right, data.log);
    const gap = steps.length > 1 ? (bottom - top) / (steps.length - 1) : 0;
    let most = 0;
    for (let i = 0; i < counts.length; i += 1) if (counts[i] > most) most = counts[i];
    view = {x, left, right, top, bottom, gap};
    const ticks = data.log ? logTicks(edges[0], edges[bins], Math.floor((right - left) / 70)) : linearTicks(edges[0], edges[bins], 6);
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const tick of ticks) {
      context.strokeStyle = theme.grid;
      context.beginPath();
      context.moveTo(x(tick), 6);
      context.lineTo(x(tick), bottom);
      context.stroke();
      context.fillStyle = theme.muted;
      if (x(tick) < right - 60) context.fillText(formatNumber(tick), x(tick), bottom + 7);
    }
    context.textAlign = "right";
    context.fillText(data.unit, right, bottom + 7);
    context.textAlign = "left";
    context.fillText("step", 4, 2);
    const every = Math.max(1, Math.ceil(13 / (gap || 13)));
    steps.forEach((step, n) => {
      const base = steps.length > 1 ? top + n * gap : bottom;
      const isChosen = n === chosen;
      context.beginPath();
      context.moveTo(x(edges[0]), base);
      for (let b = 0; b < bins; b += 1) {
        const up = base - (counts[n * bins + b] / (most || 1)) * rise;
        context.lineTo(x(edges[b]), up);
        context.lineTo(x(edges[b + 1]), up);
      }
      context.lineTo(x(edges[bins]), base);
      context.closePath();
      context.fillStyle = theme.series[0];
      context.globalAlpha = 1;
      context.fillStyle = theme.surface;
      context.fill();
      context.fillStyle = theme.series[0];
      context.globalAlpha = isChosen ? 0.7 : 0.12 + 0.4 * ((n + 1) / steps.length);
      context.fill();
      context.globalAlpha = 1;
      context.strokeStyle = isChosen ? theme.text : theme.series[0];
      context.stroke();
      if (n % every === 0 || isChosen) {
        context.fillStyle = isChosen ? theme.text : theme.muted;
        context.textAlign = "right";
        context.textBaseline = "bottom";
        context.fillText(fitText(context, formatStep(step), left - 10), left - 6, base + 2);
      }
    });
  }

  function tell(n, b, spoken) {
    const bins = data.edges.length - 1;
    chosen = Math.min(Math.max(n, 0), data.steps.length - 1);
    bin = Math.min(Math.max(b, 0), bins - 1);
    const share = data.counts[chosen * bins + bin];
    const y = data.steps.length > 1 ? view.top + chosen * view.gap : view.bottom;
    const name = `${formatNumber(data.edges[bin])} to ${formatNumber(data.edges[bin + 1])}`;
    tip.show(view.x(data.edges[bin]), y, `step ${formatStep(data.steps[chosen])}`, [
      {name, value: `${formatNumber(100 * share)} %`},
    ], spoken);
    face.redraw();
  }

  function leave() {
    chosen = null;
    tip.hide();
    face.redraw();
  }

  canvas.addEventListener("pointermove", (event) => {
    if (!view) return;
    const value = view.x.invert(event.offsetX);
    const at = data.edges.findIndex((edge) => edge > value) - 1;
    tell(Math.round((event.offsetY - view.top) / (view.gap || 1)), at < 0 ? data.edges.length - 2 : at, false);
  });
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("blur", leave);
  canvas.addEventListener("keydown", (event) => {
    const moves = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
    const move = moves[event.key];
    if (!move || !view) return;
    event.preventDefault();
    const middle = Math.floor(data.edges.length / 2);
    tell((chosen ?? data.steps.length - 1) + move[0], (bin ?? middle) + move[1], true);
  });

  return {
    update(changes) {
      data = {...data, ...changes};
      if (changes.label) face.label(changes.label);
      chosen = null;
      face.redraw();
    },
    destroy() {
      face.destroy();
      element.replaceChildren();
    },
  };
}
