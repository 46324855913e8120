/** Heat maps: rows of layers over steps, a colour for a reading. */
import {
  chartGroup, drawStepAxis, fitText, formatNumber, formatStep, linearTicks, logTicks, make,
  missingIn, paletteBytes, scale, surface, tellGroup, tooltip, zoomed,
} from "./canvas.js";

const KEY = 78; // width of the colour key with its labels
const DEFAULTS = {
  rows: [], steps: [], values: [], label: "", unit: "", rowLabel: "layer", xLabel: "step", palette: "sequential",
  log: true, marks: [], selected: null, rowFormat: null,
};

/** Return a height that gives each row a few pixels and stays on one screen. */
function heightFor(rows) {
  return Math.round(Math.min(420, Math.max(90, 46 + rows * (rows > 60 ? 4 : rows > 24 ? 9 : 15))));
}

/** Return the index of the last entry of sorted `steps` that is not after `step`. */
function columnAt(steps, step) {
  let low = 0;
  let high = steps.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (steps[middle] <= step) low = middle;
    else high = middle - 1;
  }
  return low;
}

export function heatMap(element, given) {
  let data = {...DEFAULTS, ...given};
  const height = data.height ?? heightFor(data.rows.length);
  const group = data.group ?? chartGroup();
  let image = null; // one pixel a cell
  let domain = [0, 1];
  let view = null;
  let row = null;
  let own = false;

  element.classList.add("chart");
  const plot = make("div", "chart-plot");
  element.replaceChildren(plot);
  const face = surface(plot, height, data.label, draw);
  const tip = tooltip(plot);
  const {canvas} = face;
  const member = {redraw: face.redraw};
  group.members.add(member);

  const end = () => {
    const {steps} = data;
    if (data.end !== undefined && data.end !== null) return data.end;
    const last = steps[steps.length - 1] ?? 1;
    return last + (steps.length > 1 ? last - steps[steps.length - 2] : 1);
  };

  function paintCells(theme) {
    const columns = data.steps.length;
    const count = data.rows.length;
    const missing = missingIn(data.values);
    const [low, high] = domain = data.domain ?? valueRange(missing);
    const log = data.log && low > 0;
    const place = log ? Math.log : (value) => value;
    const start = place(low);
    const span = place(high) - start || 1;
    const colors = paletteBytes(data.palette);
    const nonfinite = rgb(theme.nonfinite);
    const cells = new ImageData(Math.max(columns, 1), Math.max(count, 1));
    const bytes = cells.data;
    for (let i = 0; i < columns * count; i += 1) {
      if (missing(i)) continue;
      const value = data.values[i];
      if (Number.isFinite(value)) {
        const share = log && value <= 0 ? 0 : (place(value) - start) / span;
        const color = 3 * Math.round(255 * Math.min(Math.max(share, 0), 1));
        bytes[4 * i] = colors[color];
        bytes[4 * i + 1] = colors[color + 1];
        bytes[4 * i + 2] = colors[color + 2];
      } else [bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2]] = nonfinite;
      bytes[4 * i + 3] = 255;
    }
    const canvas = document.createElement("canvas");
    canvas.width = cells.width;
    canvas.height = cells.height;
    canvas.getContext("2d").putImageData(cells, 0, 0);
    return canvas;
  }

  function valueRange(missing) {
    let low = Infinity;
    let high = -Infinity;
    for (let i = 0; i < data.values.length; i += 1) {
      const value = data.values[i];
      if (missing(i) || !Number.isFinite(value) || (data.log && value <= 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (low > high) return data.log ? [1e-3, 1] : [0, 1];
    return low === high ? [low * 0.9, high * 1.1 || 1] : [low, high];
  }

  function rgb(color) {
    return color.match(/[\d.]+/g).slice(0, 3).map(Number);
  }

  function draw(context, width, height, theme) {
    if (!image || image.theme !== theme) image = {theme, cells: paintCells(theme)};
    const {rows, steps} = data;
    const narrow = width < 480;
    context.textAlign = "right";
    const longest = Math.max(30, ...rows.map((name) => context.measureText(rowName(name)).width));
    const left = Math.ceil(Math.min(longest, width * (narrow ? 0.28 : 0.25))) + 14;
    const right = width - KEY;
    const top = 18;
    const bottom = height - 22;
    const full = group.full ?? (steps.length ? [steps[0], end()] : [0, 1]);
    const [first, last] = zoomed(full, group);
    const x = scale(first, last, left, right);
    const tall = (bottom - top) / Math.max(rows.length, 1);
    view = {x, left, right, top, bottom, tall, theme};

    context.fillStyle = theme.missing;
    context.fillRect(left, top, right - left, bottom - top);
    drawCells(context, x, top, bottom, first, last);
    drawRowNames(context, theme, left, top, tall);
    drawMarks(context, theme, x);
    drawKey(context, theme, right + 12, top, bottom);
    context.fillStyle = theme.muted;
    context.textAlign = "left";
    context.textBaseline = "top";
    context.fillText(data.rowLabel, 2, 2);
    drawStepAxis(context, theme, x, bottom, {label: data.xLabel, format: last - first < 8 ? formatNumber : formatStep});
    if (!rows.length || !steps.length) {
      context.textAlign = "center";
      context.fillText("no readings", (left + right) / 2, (top + bottom) / 2);
    }
    drawCursor(context, theme);
  }

  const rowName = (name) => (data.rowFormat ? data.rowFormat(name) : String(name));

  /** Draw columns from their step to the next; where many share a pixel the browser blends them. */
  function drawCells(context, x, top, bottom, first, last) {
    const {steps} = data;
    context.save();
    context.beginPath();
    context.rect(x(first), top, x(last) - x(first), bottom - top);
    context.clip();
    context.imageSmoothingEnabled = false;
    const from = columnAt(steps, first);
    const to = columnAt(steps, last);
    for (let n = from; n <= to && n < steps.length; n += 1) {
      const low = Math.floor(x(steps[n]));
      const high = Math.ceil(x(steps[n + 1] ?? end()));
      context.drawImage(image.cells, n, 0, 1, image.cells.height, low, top, Math.max(high - low, 1), bottom - top);
    }
    context.restore();
  }

  function drawRowNames(context, theme, left, top, tall) {
    const every = Math.max(1, Math.ceil(12 / tall));
    context.textBaseline = "middle";
    context.textAlign = "right";
    const chosen = data.selected;
    data.rows.forEach((name, n) => {
      const near = chosen !== null && Math.abs(n - chosen) < every;
      if (n === chosen ? false : n % every || near) return;
      context.fillStyle = n === chosen ? theme.text : theme.muted;
      context.fillText(fitText(context, rowName(name), left - 12), left - 6, top + (n + 0.5) * tall);
    });
    if (chosen === null) return;
    context.strokeStyle = theme.text;
    context.lineWidth = 1.5;
    context.strokeRect(left, top + chosen * tall, view.right - left, tall);
    context.lineWidth = 1;
  }

  function drawMarks(context, theme, x) {
    for (const {from, to, kind, row: marked} of data.marks) {
      if (to < x.low || from > x.high) continue;
      const low = x(Math.max(from, x.low));
      const wide = Math.max(x(Math.min(Math.max(to, from), x.high)) - low, 1.5);
      const whole = marked === undefined || marked === null;
      const top = whole ? view.top : view.top + marked * view.tall;
      const tall = whole ? view.bottom - view.top : Math.max(view.tall, 3);
      context.strokeStyle = theme[kind] ?? theme.info;
      context.lineWidth = 2;
      if (kind === "onset") {
        context.setLineDash([4, 3]);
        context.strokeRect(low, view.top, 0, view.bottom - view.top);
        context.setLineDash([]);
      } else context.strokeRect(low, top, wide, tall);
      context.lineWidth = 1;
    }
  }

  function drawKey(context, theme, left, top, bottom) {
    const colors = paletteBytes(data.palette);
    const tall = bottom - top;
    for (let n = 0; n < tall; n += 1) {
      const at = 3 * Math.round(255 * (1 - n / tall));
      context.fillStyle = `rgb(${colors[at]},${colors[at + 1]},${colors[at + 2]})`;
      context.fillRect(left, top + n, 8, 1.5);
    }
    const log = data.log && domain[0] > 0;
    const y = scale(domain[0], domain[1], bottom, top, log);
    const count = Math.max(2, Math.floor(tall / 34));
    const ticks = log ? logTicks(domain[0], domain[1], count) : linearTicks(domain[0], domain[1], count);
    context.fillStyle = theme.muted;
    context.textAlign = "left";
    context.textBaseline = "middle";
    let free = Infinity;
    for (const tick of ticks) {
      const at = y(tick);
      if (at > free) continue;
      context.fillText(formatNumber(tick), left + 12, at);
      free = at - 13;
    }
    context.textBaseline = "top";
    context.textAlign = "right";
    const unit = [data.unit, log ? "log" : ""].filter(Boolean).join(", ");
    context.fillText(unit, left + KEY - 14, 2);
  }

  function drawCursor(context, theme) {
    const step = group.cursor;
    if (step === null || !data.steps.length || step < view.x.low || step > view.x.high) {
      tip.hide();
      return;
    }
    const at = Math.round(view.x(step)) + 0.5;
    context.strokeStyle = theme.surface;
    context.globalAlpha = 0.9;
    context.beginPath();
    context.moveTo(at, view.top);
    context.lineTo(at, view.bottom);
    context.stroke();
    context.globalAlpha = 1;
    if (!own || row === null) {
      tip.hide();
      return;
    }
    const column = columnAt(data.steps, step);
    const index = row * data.steps.length + column;
    const value = missingIn(data.values)(index) ? "no reading" : formatNumber(data.values[index]);
    const lines = [{name: rowName(data.rows[row]), value}];
    for (const {from, to, kind, text, row: marked} of data.marks) {
      const here = step >= from && step <= Math.max(to, from) && (marked === undefined || marked === null || marked === row);
      if (text && here) lines.push({color: theme[kind] ?? theme.info, name: text});
    }
    const until = (data.steps[column + 1] ?? end()) - 1;
    const from = data.steps[column];
    const title = data.xLabel !== "step"
      ? `${data.xLabel} ${formatNumber(from)}`
      : until > from ? `steps ${formatStep(from)}–${formatStep(until)}` : `step ${formatStep(from)}`;
    context.strokeStyle = theme.text;
    context.strokeRect(view.left, view.top + row * view.tall, view.right - view.left, view.tall);
    tip.show(at, view.top + (row + 0.5) * view.tall, title, lines, own === "keys");
  }

  function setCursor(step, by) {
    group.cursor = step;
    own = by;
    face.redraw();
    tellGroup(group, member);
  }

  function rowAt(y) {
    const at = Math.floor((y - view.top) / view.tall);
    return at >= 0 && at < data.rows.length ? at : null;
  }

  function select(chosen) {
    if (chosen === null) return;
    data.selected = chosen;
    face.redraw();
    data.onSelect?.(chosen);
  }

  canvas.addEventListener("pointermove", (event) => {
    if (!view) return;
    row = rowAt(event.offsetY);
    const inside = event.offsetX >= view.left && event.offsetX <= view.right;
    setCursor(inside ? Math.floor(view.x.invert(event.offsetX)) : null, "pointer");
  });
  canvas.addEventListener("pointerleave", () => setCursor(null, false));
  canvas.addEventListener("blur", () => setCursor(null, false));
  canvas.addEventListener("click", (event) => view && data.onSelect && select(rowAt(event.offsetY)));
  canvas.addEventListener("dblclick", () => {
    group.range = null;
    face.redraw();
    tellGroup(group, member);
  });
  canvas.addEventListener("keydown", (event) => {
    if (!view || !data.steps.length || event.ctrlKey || event.metaKey || event.altKey) return;
    const far = event.shiftKey ? 10 : 1;
    const column = columnAt(data.steps, group.cursor ?? view.x.low);
    const goTo = (n) => setCursor(data.steps[Math.min(Math.max(n, 0), data.steps.length - 1)], "keys");
    const moveRow = (by) => {
      row = Math.min(Math.max((row ?? data.selected ?? 0) + by, 0), data.rows.length - 1);
      goTo(column);
    };
    const actions = {
      ArrowLeft: () => goTo(column - far), ArrowRight: () => goTo(column + far),
      ArrowUp: () => moveRow(-far), ArrowDown: () => moveRow(far),
      Home: () => goTo(0), End: () => goTo(data.steps.length - 1),
      Enter: () => data.onSelect && select(row),
      Escape: () => {
        group.range = null;
        setCursor(null, false);
      },
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    row ??= data.selected ?? 0;
    actions[event.key]();
  });

  return {
    update(changes) {
      data = {...data, ...changes};
      if (changes.label) face.label(changes.label);
      image = null;
      face.redraw();
    },
    destroy() {
      group.members.delete(member);
      face.destroy();
      element.replaceChildren();
    },
  };
}
