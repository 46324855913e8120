/** Heat maps: rows of layers over steps, a colour for a reading. */
import {
  chartGroup, drawStepAxis, fitText, formatNumber, formatStep, linearTicks, logTicks, make,
  missingIn, paletteBytes, scale, surface, tellGroup, tooltip, zoomed,
} from "./canvas.js";

const NONE = -1; // shades that are no colours of the palette
const ODD = 256;
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

/** Return the colours of all shades as the 32 bits of a pixel. */
function packedColors(bytes, odd) {
  const colors = new Uint32Array(ODD + 1);
  const packed = new Uint8ClampedArray(colors.buffer);
  for (let shade = 0; shade <= ODD; shade += 1) {
    const rgb = shade === ODD ? odd : bytes.subarray(3 * shade, 3 * shade + 3);
    packed.set([rgb[0], rgb[1], rgb[2], 255], 4 * shade);
  }
  return colors;
}

/** Return the first and last index that each pixel shows, of `count`. */
function spans(pixels, indexAt, count) {
  const ends = new Int32Array(2 * pixels);
  for (let pixel = 0; pixel < pixels; pixel += 1) {
    const first = indexAt(pixel);
    ends[2 * pixel] = first;
    ends[2 * pixel + 1] = Math.min(Math.max(indexAt(pixel + 1 - 1e-9), first), count - 1);
  }
  return ends;
}

export function heatMap(element, given) {
  let data = {...DEFAULTS, ...given};
  const height = data.height ?? heightFor(data.rows.length);
  const group = data.group ?? chartGroup();
  let image = {}; // of the cells, kept until something changes
  let domain = [0, 1];
  let view = null;
  let row = null;
  let own = false;

  element.classList.add("chart");
  const plot = make("div", "chart-plot");
  element.replaceChildren(plot);
  const face = surface(plot, height, data.label, {draw, point: drawCursor});
  const tip = tooltip(plot);
  const {canvas} = face;
  const member = {redraw: face.redraw, point: face.point};
  group.members.add(member);

  const end = () => {
    const {steps} = data;
    if (data.end !== undefined && data.end !== null) return data.end;
    const last = steps[steps.length - 1] ?? 1;
    return last + (steps.length > 1 ? last - steps[steps.length - 2] : 1);
  };

  /** Return a shade for each cell: 0 to 255, ODD for what is not finite, NONE without a reading. */
  function shadesOf(values) {
    const missing = missingIn(values);
    domain = data.domain ?? valueRange(missing);
    const log = data.log && domain[0] > 0;
    const place = log ? Math.log : (value) => value;
    const start = place(domain[0]);
    const span = place(domain[1]) - start || 1;
    const shades = new Int16Array(values.length);
    for (let cell = 0; cell < values.length; cell += 1) {
      const value = values[cell];
      if (missing(cell)) shades[cell] = NONE;
      else if (!Number.isFinite(value)) shades[cell] = ODD;
      else {
        const share = log && value <= 0 ? 0 : (place(value) - start) / span;
        shades[cell] = Math.round(255 * Math.min(Math.max(share, 0), 1));
      }
    }
    return shades;
  }

  /** Return an image of the steps from `first` to `last`: each pixel is the largest of its cells. */
  function paintCells(theme, wide, high, first, last) {
    const {steps, rows} = data;
    const {shades} = image;
    const stepAt = (pixel) => first + ((last - first) * pixel) / wide;
    const across = spans(wide, (pixel) => columnAt(steps, stepAt(pixel)), steps.length);
    const down = spans(high, (pixel) => Math.floor((pixel * rows.length) / high), rows.length);
    const cells = new ImageData(wide, high);
    const pixels = new Uint32Array(cells.data.buffer);
    const colors = packedColors(paletteBytes(data.palette), rgb(theme.nonfinite));
    for (let x = 0; x < wide; x += 1) {
      if (stepAt(x + 1) < steps[0]) continue;
      for (let y = 0; y < high; y += 1) {
        let shade = NONE;
        for (let row = down[2 * y]; row <= down[2 * y + 1]; row += 1) {
          const line = row * steps.length;
          for (let column = across[2 * x]; column <= across[2 * x + 1]; column += 1) {
            if (shades[line + column] > shade) shade = shades[line + column];
          }
        }
        if (shade !== NONE) pixels[y * wide + x] = colors[shade];
      }
    }
    const canvas = document.createElement("canvas");
    canvas.width = wide;
    canvas.height = high;
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
    const {rows, steps} = data;
    const narrow = width < 480;
    context.textAlign = "right";
    image.names ??= rows.reduce((most, name) => Math.max(most, context.measureText(rowName(name)).width), 30);
    const left = Math.ceil(Math.min(image.names, width * (narrow ? 0.28 : 0.25))) + 14;
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
    drawCells(context, theme, x, top, bottom);
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
  }

  const rowName = (name) => (data.rowFormat ? data.rowFormat(name) : String(name));

  function drawCells(context, theme, x, top, bottom) {
    const [left, right] = [Math.round(x(x.low)), Math.round(x(x.high))];
    const [wide, high] = [right - left, bottom - top];
    if (!data.rows.length || !data.steps.length || wide < 1 || high < 1) return;
    const key = [wide, high, x.low, x.high].join();
    if (image.key !== key || image.theme !== theme) {
      image.shades ??= shadesOf(data.values);
      image.cells = paintCells(theme, wide, high, x.low, x.high);
      Object.assign(image, {key, theme});
    }
    context.drawImage(image.cells, left, top, wide, high);
  }

  function drawRowNames(context, theme, left, top, tall) {
    const every = Math.max(1, Math.ceil(12 / tall));
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.fillStyle = theme.muted;
    for (let n = 0; n < data.rows.length; n += every) {
      const name = fitText(context, rowName(data.rows[n]), left - 12);
      context.fillText(name, left - 6, top + (n + 0.5) * tall);
    }
  }

  function drawFrame(context, theme, n) {
    context.strokeStyle = theme.text;
    context.strokeRect(view.left, view.top + n * view.tall, view.right - view.left, view.tall);
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
    if (view && data.selected !== null) drawFrame(context, theme, data.selected);
    if (!view || step === null || !data.steps.length || step < view.x.low || step > view.x.high) {
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
    drawFrame(context, theme, row);
    tip.show(at, view.top + (row + 0.5) * view.tall, title, lines, own === "keys");
  }

  function setCursor(step, by) {
    group.cursor = step;
    own = by;
    tellGroup(group, {moved: true});
  }

  function rowAt(y) {
    const at = Math.floor((y - view.top) / view.tall);
    return at >= 0 && at < data.rows.length ? at : null;
  }

  function select(chosen) {
    if (chosen === null) return;
    data.selected = chosen;
    face.point();
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
    tellGroup(group);
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
        tellGroup(group);
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
      image = {};
      face.redraw();
    },
    destroy() {
      group.members.delete(member);
      face.destroy();
      element.replaceChildren();
    },
  };
}
