/** Line charts over steps: log or linear, smoothed, with marked ranges and a rail for NaN and Inf. */
import {
  chartGroup, drawStepAxis, formatNumber, formatStep, linearTicks, logTicks, make, scale, surface,
  tellGroup, tooltip, zoomed,
} from "./canvas.js";
import {hasOdd, mainLine, nearest, smoothed, stepRange, valueRange} from "./series.js";
import {RAIL, drawOnsets, drawRail, drawRanges, drawReference, trace} from "./strokes.js";

const TOLD = 8; // series in the readout, those nearest to the pointer
const DEFAULTS = {
  series: [], marks: [], references: [], label: "", unit: "", xLabel: "step", log: false,
  smoothing: 0, xLog: false, points: false, controls: true, height: 240, legend: true,
};

export function lineChart(element, given) {
  let data = {...DEFAULTS, ...given};
  const group = data.group ?? chartGroup();
  const hidden = new Set(); // names of series
  let view = null; // scales of the last drawing
  let drag = null;
  let ownCursor = false;
  let pointerY = 0;
  const curves = new Map(); // smoothed lines by the name of their series

  element.classList.add("chart");
  const tools = make("div", "chart-tools");
  const plot = make("div", "chart-plot");
  element.replaceChildren(tools, plot);
  const face = surface(plot, data.height, data.label, {draw, point: drawCursor});
  const tip = tooltip(plot);
  const {canvas} = face;
  const member = {redraw: face.redraw, point: face.point};
  group.members.add(member);

  function buildTools() {
    tools.replaceChildren();
    const legend = make("div", "chart-legend");
    if (data.legend && data.series.length > 1 && data.series.length <= 24) {
      data.series.forEach((series, n) => {
        const entry = make("button", "chart-legend-entry");
        entry.type = "button";
        entry.setAttribute("aria-pressed", String(!hidden.has(series.name)));
        const swatch = make("span", "chart-swatch");
        swatch.dataset.series = String(colorIndex(series, n));
        if (series.color) swatch.style.background = series.color;
        entry.append(swatch, make("span", "", series.name));
        entry.addEventListener("click", () => {
          if (hidden.has(series.name)) hidden.delete(series.name);
          else hidden.add(series.name);
          entry.setAttribute("aria-pressed", String(!hidden.has(series.name)));
          face.redraw();
        });
        legend.append(entry);
      });
    }
    if (legend.firstChild) tools.append(legend);
    if (!data.controls) return;
    const controls = make("div", "chart-controls");
    const smooth = make("label", "chart-smoothing");
    const slider = make("input");
    Object.assign(slider, {type: "range", min: "0", max: "0.99", step: "0.01"});
    slider.value = String(data.smoothing);
    slider.setAttribute("aria-label", "smoothing");
    slider.addEventListener("input", () => update({smoothing: Number(slider.value)}, false));
    smooth.append(make("span", "", "smooth"), slider);
    const log = make("button", "chart-log", "log");
    log.type = "button";
    log.setAttribute("aria-pressed", String(data.log));
    log.addEventListener("click", () => setLog(!data.log));
    controls.append(smooth, log);
    tools.append(controls);
  }

  function setLog(log) {
    update({log}, false);
    tools.querySelector(".chart-log")?.setAttribute("aria-pressed", String(log));
  }

  const colorIndex = (series, n) => series.colorIndex ?? n % 8;
  const visible = () => data.series.filter((series) => !hidden.has(series.name));

  /** Return the line of a series as it is shown: smoothed, and of means where it is thinned. */
  function shownLine(series) {
    const line = mainLine(series);
    if (!(data.smoothing > 0)) return line;
    const kept = curves.get(series.name);
    if (kept?.of === line && kept.amount === data.smoothing) return kept;
    const made = {of: line, amount: data.smoothing, steps: line.steps, values: smoothed(line.values, data.smoothing)};
    curves.set(series.name, made);
    return made;
  }

  const fullRange = () => group.full ?? stepRange(data.series, data.marks, data.xLog);

  function draw(context, width, height, theme) {
    const [first, last] = zoomed(fullRange(), group);
    const range = valueRange(visible(), data.references, first, last, data.log);
    const rail = hasOdd(visible()) ? RAIL : 0;
    const top = 18 + rail;
    const bottom = height - 22;
    const room = Math.max(2, Math.floor((bottom - top) / 40));
    const ticks = range.log ? logTicks(range.low, range.high, room) : linearTicks(range.low, range.high, room);
    const labels = ticks.map(formatNumber);
    const left = Math.ceil(Math.max(24, ...labels.map((text) => context.measureText(text).width))) + 10;
    const right = width - 10;
    const x = scale(first, last, left, right, data.xLog);
    const y = scale(range.low, range.high, bottom, top, range.log);
    view = {x, y, left, right, top, bottom, theme};

    context.textBaseline = "middle";
    context.textAlign = "right";
    ticks.forEach((tick, n) => {
      const at = Math.round(y(tick)) + 0.5;
      context.strokeStyle = theme.grid;
      context.beginPath();
      context.moveTo(left, at);
      context.lineTo(right, at);
      context.stroke();
      context.fillStyle = theme.muted;
      context.fillText(labels[n], left - 6, at);
    });
    context.textAlign = "left";
    context.textBaseline = "top";
    const unit = [data.unit, range.log ? "log scale" : ""].filter(Boolean).join(", ");
    if (unit) context.fillText(unit, 2, 2);

    context.save();
    context.beginPath();
    context.rect(left - 4, 0, right - left + 8, height);
    context.clip();
    drawRanges(context, theme, data.marks, x, top - rail, bottom);
    context.save();
    context.beginPath();
    context.rect(left - 4, top - 4, right - left + 8, bottom - top + 8); // whole points at the edges
    context.clip();
    for (const {value, text} of data.references) drawReference(context, theme, y(value), left, right, text);
    data.series.forEach((series, n) => {
      if (!hidden.has(series.name)) drawSeries(context, theme, series, n, x, y, range.log, bottom);
    });
    context.restore();
    if (rail) drawRail(context, theme, visible(), x, top - rail, left);
    drawOnsets(context, theme, data.marks, x, top - rail, bottom);
    context.restore();
    drawStepAxis(context, theme, x, bottom, {
      log: data.xLog, label: data.xLabel, format: data.xLog || last - first < 8 ? formatNumber : formatStep,
    });
    if (!data.series.some(({steps}) => steps.length)) {
      context.textAlign = "center";
      context.fillText("no readings", (left + right) / 2, (top + bottom) / 2);
    }
  }

  function drawSeries(context, theme, series, n, x, y, log, bottom) {
    const kind = {log, xLog: data.xLog};
    const color = series.color ?? theme.series[colorIndex(series, n)];
    context.strokeStyle = color;
    context.fillStyle = color;
    context.setLineDash(series.dash ?? []);
    if (data.smoothing > 0 || series.middle) {
      context.globalAlpha = 0.28;
      trace(context, series, x, y, kind);
    }
    context.globalAlpha = series.faint ? 0.35 : 1;
    context.lineWidth = series.faint ? 1 : data.smoothing > 0 ? 2 : 1.6;
    trace(context, shownLine(series), x, y, kind);
    context.globalAlpha = 1;
    context.lineWidth = 1;
    context.setLineDash([]);
    const {steps, values} = series;
    const isDrawn = (value) => Number.isFinite(value) && !(log && value <= 0);
    const sparse = steps.length * 6 < x(x.high) - x(x.low);
    for (let i = 0; i < steps.length; i += 1) {
      if (log && Number.isFinite(values[i]) && values[i] <= 0) context.fillRect(x(steps[i]) - 1, bottom - 4, 2, 6);
      if (!isDrawn(values[i])) continue;
      const isAlone = !isDrawn(values[i - 1]) && !isDrawn(values[i + 1]); // no line shows it
      if (!data.points && !sparse && !isAlone) continue;
      context.beginPath();
      context.arc(x(steps[i]), y(values[i]), isAlone ? 3.5 : 2.2, 0, 2 * Math.PI);
      context.fill();
    }
  }

  function drawCursor(context, theme) {
    if (!view) return;
    if (drag && Math.abs(drag.to - drag.from) > 3) {
      context.fillStyle = theme.accent;
      context.globalAlpha = 0.15;
      context.fillRect(Math.min(drag.from, drag.to), view.top, Math.abs(drag.to - drag.from), view.bottom - view.top);
      context.globalAlpha = 1;
    }
    const step = group.cursor;
    if (step === null || step < view.x.low || step > view.x.high) {
      tip.hide();
      return;
    }
    const at = Math.round(view.x(step)) + 0.5;
    context.strokeStyle = theme.muted;
    context.beginPath();
    context.moveTo(at, view.top);
    context.lineTo(at, view.bottom);
    context.stroke();
    const read = readings(step, theme);
    for (const {value, color, near} of read) {
      if (!Number.isFinite(value)) continue;
      const place = view.y(value);
      if (!(place >= view.top - 2 && place <= view.bottom + 2)) continue;
      context.fillStyle = color;
      context.strokeStyle = theme.surface;
      context.beginPath();
      context.arc(view.x(near), place, 3.5, 0, 2 * Math.PI);
      context.fill();
      context.stroke();
    }
    if (!ownCursor) {
      tip.hide();
      return;
    }
    const lines = read.map(({name, value, color, near}) => ({
      color, name: near === step ? name : `${name} (${data.xLabel} ${formatAt(near)})`, value: formatNumber(value),
    }));
    for (const {from, to, kind, text} of data.marks) {
      if (text && step >= from && step <= to && kind !== "onset") lines.push({color: theme[kind] ?? theme.info, name: text});
    }
    tip.show(at, pointerY, `${data.xLabel} ${formatAt(step)}`, lines, ownCursor === "keys");
  }

  const formatAt = (step) => (data.xLabel === "step" ? formatStep(step) : formatNumber(step));

  function readings(step, theme) {
    const found = [];
    data.series.forEach((series, n) => {
      if (hidden.has(series.name) || !series.steps.length) return;
      const line = shownLine(series);
      const at = nearest(line.steps, step);
      const color = series.color ?? theme.series[colorIndex(series, n)];
      found.push({name: series.name, value: line.values[at], near: line.steps[at], color});
    });
    if (found.length <= TOLD) return found;
    const away = ({value}) => (Number.isFinite(value) ? Math.abs(view.y(value) - pointerY) : 0);
    return found.sort((a, b) => away(a) - away(b)).slice(0, TOLD);
  }

  function nearestStep(step) {
    let best = step;
    let distance = Infinity;
    for (const {steps} of visible()) {
      if (!steps.length) continue;
      const near = steps[nearest(steps, step)];
      if (Math.abs(near - step) < distance) [best, distance] = [near, Math.abs(near - step)];
    }
    return best;
  }

  function setCursor(step, by) {
    group.cursor = step;
    ownCursor = by;
    tellGroup(group, {moved: true});
  }

  function setRange(range) {
    group.range = range;
    tellGroup(group);
  }

  canvas.addEventListener("pointermove", (event) => {
    if (!view) return;
    pointerY = event.offsetY;
    if (drag) drag.to = event.offsetX;
    setCursor(nearestStep(view.x.invert(event.offsetX)), "pointer");
  });
  canvas.addEventListener("pointerleave", () => {
    drag = null;
    setCursor(null, false);
  });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse") drag = {from: event.offsetX, to: event.offsetX};
  });
  canvas.addEventListener("pointerup", () => {
    if (drag && Math.abs(drag.to - drag.from) > 8) {
      const ends = [view.x.invert(drag.from), view.x.invert(drag.to)].sort((a, b) => a - b);
      setRange(ends);
    }
    drag = null;
    face.point();
  });
  canvas.addEventListener("dblclick", () => setRange(null));
  canvas.addEventListener("blur", () => setCursor(null, false));
  canvas.addEventListener("keydown", (event) => {
    if (!view || event.ctrlKey || event.metaKey || event.altKey) return;
    const {x, left, right} = view;
    const now = group.cursor ?? x.low;
    const move = (pixels) => {
      const target = nearestStep(x.invert(Math.min(Math.max(x(now) + pixels, left), right)));
      return target !== now ? target : stepBeside(now, Math.sign(pixels));
    };
    const zoom = (factor) => {
      const middle = (left + right) / 2;
      const half = ((right - left) / 2) * factor;
      const full = fullRange();
      setRange([Math.max(full[0], x.invert(middle - half)), Math.min(full[1], x.invert(middle + half))]);
    };
    const far = event.shiftKey ? 10 : 1;
    const actions = {
      ArrowLeft: () => setCursor(move(-2 * far), "keys"),
      ArrowRight: () => setCursor(move(2 * far), "keys"),
      Home: () => setCursor(nearestStep(x.low), "keys"),
      End: () => setCursor(nearestStep(x.high), "keys"),
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
      Escape: () => setRange(null),
      l: () => setLog(!data.log), L: () => setLog(!data.log),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    pointerY = (view.top + view.bottom) / 2;
    action();
  });

  /** Return the next recorded step in a direction, where one pixel holds none. */
  function stepBeside(step, direction) {
    let best = step;
    for (const {steps} of visible()) {
      const near = steps[nearest(steps, step) + direction];
      if (near === undefined || (near - step) * direction <= 0) continue;
      if (best === step || (near - best) * direction < 0) best = near;
    }
    return best;
  }

  function update(changes, rebuild = true) {
    data = {...data, ...changes};
    if (changes.label) face.label(changes.label);
    if (rebuild) buildTools();
    face.redraw();
  }

  buildTools();
  return {
    update,
    destroy() {
      group.members.delete(member);
      face.destroy();
      element.replaceChildren();
    },
  };
}
