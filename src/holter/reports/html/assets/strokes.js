/** Parts of a line chart, drawn on a canvas: marked ranges, references, lines, the rail. */
import {fitText, formatNumber} from "./canvas.js";
import {mergedRanges} from "./series.js";

export const RAIL = 14; // height of the rail of values that are not finite

/** Shade the marked ranges of steps. */
export function drawRanges(context, theme, marks, x, top, bottom) {
  for (const {from, to, kind} of mergedRanges(marks)) {
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

/** Mark the steps at which something begins, with their texts above the plot. */
export function drawOnsets(context, theme, marks, x, top, bottom) {
  let free = -Infinity;
  for (const {from, kind, text} of [...marks].sort((a, b) => a.from - b.from)) {
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

/** Draw a horizontal line with its text. */
export function drawReference(context, theme, at, left, right, text) {
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

/** Draw a polyline with at most four points for a column of pixels: first, lowest, highest, last. */
export function trace(context, {steps, values}, x, y, {log, xLog}) {
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
    if (steps[i + 1] < before || steps[i - 1] > after || (xLog && steps[i] <= 0)) continue;
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
export function drawRail(context, theme, series, x, top, left) {
  context.fillStyle = theme.missing;
  context.fillRect(left, top, x(x.high) - left, RAIL - 4);
  const taken = new Set();
  const kinds = new Set();
  for (const {steps, values} of series) {
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
