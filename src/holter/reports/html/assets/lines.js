/** Line charts over steps: log or linear, smoothed, with marked ranges and a rail for NaN and Inf. */
import {
  chartGroup, drawStepAxis, fitText, formatNumber, formatStep, linearTicks, logTicks, make, scale,
  surface, tellGroup, tooltip, zoomed,
} from "./canvas.js";

const RAIL = 14; // height of the rail of values that are not finite
const TOLD = 8; // series in the readout, those nearest to the pointer
const DEFAULTS = {
  series: [], marks: [], references: [], label: "", unit: "", xLabel: "step", log: false,
  smoothing: 0, xLog: false, points: false, controls: true, height: 240, legend: true,
};

/** Return the exponential mean of the finite values, corrected for its start; others unchanged. */
export function smoothed(values, amount) {
  const result = new Float64Array(values.length);
  let mean = 0;
  let weight = 0;
  for (let i = 0; i < values.length; i += 1) {
    if (Number.isFinite(values[i])) {
      mean = amount * mean + (1 - amount) * values[i];
      weight = amount * weight + (1 - amount);
      result[i] = mean / weight;
    } else result[i] = values[i];
  }
  return result;
}

/** Return the index of the entry of sorted `steps` nearest to `step`. */
export function nearest(steps, step) {
  let low = 0;
  let high = steps.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] < step) low = middle + 1;
    else high = middle;
  }
  return low > 0 && step - steps[low - 1] < steps[low] - step ? low - 1 : low;
}

/** Return marked ranges without their overlaps, so that none is shaded twice. */
function mergedRanges(marks) {
  const merged = [];
  for (const {from, to, kind} of [...marks].sort((a, b) => a.from - b.from)) {
    if (kind === "onset") continue;
    const before = merged.findLast((range) => range.kind === kind);
    if (before && from <= before.to) before.to = Math.max(before.to, to);
    else merged.push({from, to, kind});
  }
  return merged;
}

export function lineChart(element, given) {
  let data = {...DEFAULTS, ...given};
  let group = data.group ?? chartGroup();
  let hidden = new Set();
  let view = null; // scales of the last drawing
  let drag = null;
  let ownCursor = false;
  let pointerY = 0;
  let curves = new Map();

  element.classList.add("chart");
  const tools = make("div", "chart-tools");
  const plot = make("div", "chart-plot");
  element.replaceChildren(tools, plot);
  const face = surface(plot, data.height, data.label, draw);
  const tip = tooltip(plot);
  const {canvas} = face;
  const member = {redraw: face.redraw};
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

  function smoothCurve(series) {
    const key = `${series.name}|${data.smoothing}`;
    const kept = curves.get(key);
    if (kept && kept.of === series.values) return kept.values;
    if (curves.size > 64) curves.clear();
    const values = smoothed(series.values, data.smoothing);
    curves.set(key, {of: series.values, values});
    return values;
  }

  function fullRange() {
    if (group.full) return group.full;
    let low = Infinity;
    let high = -Infinity;
    for (const {steps} of data.series) {
      if (!steps.length) continue;
      low = Math.min(low, steps[0]);
      high = Math.max(high, steps[steps.length - 1]);
    }
    for (const mark of data.marks) {
      low = Math.min(low, mark.from);
      high = Math.max(high, mark.to);
    }
    if (!(low <= high)) return data.xLog ? [1, 10] : [0, 1];
    if (data.xLog && low <= 0) low = Math.min(...data.series.flatMap(({steps}) => Array.from(steps).filter((s) => s > 0)), 1);
    if (low === high) return data.xLog ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
    return [low, high];
  }

  function valueRange(first, last) {
    let low = Infinity;
    let high = -Infinity;
    let least = Infinity; // the smallest positive one
    const see = (value) => {
      if (!Number.isFinite(value)) return;
      if (value < low) low = value;
      if (value > high) high = value;
      if (value > 0 && value < least) least = value;
    };
    for (const {steps, values} of visible()) {
      for (let i = 0; i < steps.length; i += 1) {
        if (steps[i] >= first && steps[i] <= last) see(values[i]);
      }
    }
    for (const {value} of data.references) see(value);
    const log = data.log && least < Infinity;
    if (log) low = least;
    if (low > high) [low, high] = [0, 1];
    if (log) {
      const space = Math.max((high / low) ** 0.06, 1.05);
      return {low: low / space, high: high * space, log};
    }
    const space = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    const floor = low >= 0 && low - space < 0 ? 0 : low - space;
    return {low: floor, high: high + space, log};
  }

  function hasRail() {
    return visible().some(({values}) => {
      for (let i = 0; i < values.length; i += 1) if (!Number.isFinite(values[i])) return true;
      return false;
    });
  }

  function draw(context, width, height, theme) {
    const [first, last] = zoomed(fullRange(), group);
    const range = valueRange(first, last);
    const rail = hasRail() ? RAIL : 0;
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
    drawRanges(context, theme, x, top - rail, bottom);
    context.save();
    context.beginPath();
    context.rect(left - 4, top - 4, right - left + 8, bottom - top + 8); // whole points at the edges
    context.clip();
    for (const {value, text} of data.references) drawReference(context, theme, y(value), left, right, text);
    data.series.forEach((series, n) => {
      if (!hidden.has(series.name)) drawSeries(context, theme, series, n, x, y, range.log, bottom);
    });
    context.restore();
    if (rail) drawRail(context, theme, x, top - rail, left);
    drawOnsets(context, theme, x, top - rail, bottom);
    context.restore();
    drawStepAxis(context, theme, x, bottom, {
      log: data.xLog, label: data.xLabel, format: data.xLog || last - first < 8 ? formatNumber : formatStep,
    });
    if (!data.series.some(({steps}) => steps.length)) {
      context.textAlign = "center";
      context.fillText("no readings", (left + right) / 2, (top + bottom) / 2);
    }
    drawCursor(context, theme);
  }

  function drawRanges(context, theme, x, top, bottom) {
    for (const {from, to, kind} of mergedRanges(data.marks)) {
      const low = x(Math.max(from, x.low));
      const wide = Math.max(x(Math.min(to, x.high)) - low, 2);
      if (to < x.low || from > x.high) continue;
      context.fillStyle = theme[kind] ?? theme.info;
      context.globalAlpha = wide > 0.9 * (x(x.high) - x(x.low)) ? 0.06 : 0.13; // all of it marks nothing
      context.fillRect(low, top, wide, bottom - top);
      context.globalAlpha = 0.75;
      context.fillRect(low, bottom - 3, wide, 3);
      context.globalAlpha = 1;
    }
  }

  function drawOnsets(context, theme, x, top, bottom) {
    let free = -Infinity;
    for (const {from, kind, text} of [...data.marks].sort((a, b) => a.from - b.from)) {
      if (kind !== "onset" || from < x.low || from > x.high) continue;
      const at = Math.round(x(from)) + 0.5;
      context.strokeStyle = theme.onset;
      context.fillStyle = theme.onset;
      context.setLineDash([4, 3]);
      context.beginPath();
      context.moveTo(at, top);
      context.lineTo(at, bottom);
      context.stroke();
      context.setLineDash([]);
      context.beginPath();
      context.moveTo(at - 5, top - 1);
      context.lineTo(at + 5, top - 1);
      context.lineTo(at, top + 6);
      context.fill();
      const name = fitText(context, text ?? "", 220);
      const width = context.measureText(name).width;
      const place = at + 8 + width > x(x.high) ? at - 8 - width : at + 8;
      if (place < free) continue;
      context.textAlign = "left";
      context.textBaseline = "middle";
      context.fillText(name, place, top - 9);
      free = place + width + 8;
    }
  }

  function drawReference(context, theme, at, left, right, text) {
    context.strokeStyle = theme.muted;
    context.setLineDash([6, 4]);
    context.beginPath();
    context.moveTo(left, Math.round(at) + 0.5);
    context.lineTo(right, Math.round(at) + 0.5);
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = theme.muted;
    context.textAlign = "right";
    context.textBaseline = "bottom";
    context.fillText(text ?? "", right - 4, at - 2);
  }

  function drawSeries(context, theme, series, n, x, y, log, bottom) {
    const color = series.color ?? theme.series[colorIndex(series, n)];
    context.strokeStyle = color;
    context.fillStyle = color;
    context.setLineDash(series.dash ?? []);
    if (data.smoothing > 0) {
      context.globalAlpha = 0.25;
      context.lineWidth = 1;
      trace(context, series.steps, series.values, x, y, log);
      context.globalAlpha = 1;
      context.lineWidth = 2;
      trace(context, series.steps, smoothCurve(series), x, y, log);
    } else {
      context.globalAlpha = series.faint ? 0.35 : 1;
      context.lineWidth = series.faint ? 1 : 1.6;
      trace(context, series.steps, series.values, x, y, log);
    }
    context.globalAlpha = 1;
    context.lineWidth = 1;
    context.setLineDash([]);
    const isDrawn = (value) => Number.isFinite(value) && !(log && value <= 0);
    const sparse = series.steps.length * 6 < x(x.high) - x(x.low);
    for (let i = 0; i < series.steps.length; i += 1) {
      if (!isDrawn(series.values[i])) continue;
      const isAlone = !isDrawn(series.values[i - 1]) && !isDrawn(series.values[i + 1]); // no line shows it
      if (!data.points && !sparse && !isAlone) continue;
      context.beginPath();
      context.arc(x(series.steps[i]), y(series.values[i]), isAlone ? 3.5 : 2.2, 0, 2 * Math.PI);
      context.fill();
    }
    if (log) {
      for (let i = 0; i < series.steps.length; i += 1) {
        if (Number.isFinite(series.values[i]) && series.values[i] <= 0) {
          context.fillRect(x(series.steps[i]) - 1, bottom - 4, 2, 6);
        }
      }
    }
  }

  /** Draw a polyline with at most four points for a column of pixels: first, lowest, highest, last. */
  function trace(context, steps, values, x, y, log) {
    context.beginPath();
    let open = false;
    let column = NaN;
    let lowest = 0;
    let highest = 0;
    let end = 0;
    const flush = () => {
      if (Number.isNaN(column)) return;
      if (lowest !== highest) {
        context.lineTo(column, lowest);
        context.lineTo(column, highest);
      }
      context.lineTo(column, end);
      column = NaN;
    };
    const before = x.low - (x.high - x.low);
    const after = x.high + (x.high - x.low);
    for (let i = 0; i < steps.length; i += 1) {
      const value = values[i];
      if (!Number.isFinite(value) || (log && value <= 0)) {
        flush();
        open = false;
        continue;
      }
      if (steps[i + 1] < before || steps[i - 1] > after || (data.xLog && steps[i] <= 0)) continue;
      const at = Math.round(x(steps[i]) * 2) / 2;
      const place = y(value);
      if (!open) {
        context.moveTo(at, place);
        open = true;
      }
      if (at !== column) {
        flush();
        context.lineTo(at, place);
        column = at;
        lowest = place;
        highest = place;
      } else {
        if (place > lowest) lowest = place;
        if (place < highest) highest = place;
      }
      end = place;
    }
    flush();
    context.stroke();
  }

  /** Mark NaN, +Inf and -Inf above the plot: a square, an upward and a downward triangle. */
  function drawRail(context, theme, x, top, left) {
    context.fillStyle = theme.missing;
    context.fillRect(left, top, x(x.high) - left, RAIL - 4);
    const taken = new Set();
    const kinds = new Set();
    for (const {steps, values} of visible()) {
      for (let i = 0; i < steps.length; i += 1) {
        if (Number.isFinite(values[i]) || steps[i] < x.low || steps[i] > x.high) continue;
        const at = Math.round(x(steps[i]));
        const kind = formatNumber(values[i]);
        kinds.add(kind);
        if (taken.has(`${at}${kind}`)) continue;
        taken.add(`${at}${kind}`);
        context.fillStyle = theme.nonfinite;
        context.beginPath();
        if (kind === "NaN") context.rect(at - 2, top + 1, 4, RAIL - 6);
        else {
          const up = kind === "+Inf";
          context.moveTo(at - 4, top + (up ? 9 : 1));
          context.lineTo(at + 4, top + (up ? 9 : 1));
          context.lineTo(at, top + (up ? 1 : 9));
        }
        context.fill();
      }
    }
    context.fillStyle = theme.nonfinite;
    context.textAlign = "right";
    context.textBaseline = "bottom";
    if (kinds.size) context.fillText([...kinds].sort().join(" "), x(x.high), top - 1);
  }

  function drawCursor(context, theme) {
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

  const formatAt = (step) => (data.xLog ? formatNumber(step) : formatStep(step));

  function readings(step, theme) {
    const found = [];
    data.series.forEach((series, n) => {
      if (hidden.has(series.name) || !series.steps.length) return;
      const at = nearest(series.steps, step);
      const values = data.smoothing > 0 ? smoothCurve(series) : series.values;
      const color = series.color ?? theme.series[colorIndex(series, n)];
      found.push({name: series.name, value: values[at], near: series.steps[at], color});
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
    face.redraw();
    tellGroup(group, member);
  }

  function setRange(range) {
    group.range = range;
    face.redraw();
    tellGroup(group, member);
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
    face.redraw();
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
