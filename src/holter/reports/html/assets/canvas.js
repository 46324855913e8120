/** What all charts share: a canvas that follows size and theme, scales, ticks, numbers, colours. */

/** Bits of the float32 that stands for a reading that was not taken, as in the run format. */
export const MISSING_BITS = 0x7fc0ab5e;

/** Make an element with a class and a text; the text is never read as HTML. */
export function make(tag, className = "", text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}

/** Return a function that says whether entry `i` of `values` is a reading that was not taken. */
export function missingIn(values) {
  if (values instanceof Float32Array) {
    const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
    return (i) => bits[i] === MISSING_BITS;
  }
  return (i) => values[i] === null || values[i] === undefined;
}

/** Return a number as a reader wants it: `1.61`, `12,400`, `3.2e-9`, `NaN`, `+Inf`. */
export function formatNumber(value) {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "−Inf";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) {
    return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e").replace(/-/g, "−");
  }
  const digits = size >= 1000 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(size)));
  const plain = Number(value.toFixed(digits));
  return plain.toLocaleString("en-US", {maximumFractionDigits: digits}).replace(/-/g, "−");
}

/** Return a step as text: `12,400`. */
export function formatStep(step) {
  return (Math.round(step) || 0).toLocaleString("en-US");
}

/** Return round positions for ticks between two numbers, about `count` of them. */
export function linearTicks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const unit = [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.75) * power;
  const ticks = [];
  for (let n = Math.ceil(low / unit - 1e-9); n * unit <= high + unit * 1e-9; n += 1) {
    ticks.push(n * unit || 0); // not -0
  }
  return ticks;
}

/** Return powers of ten between two positive numbers, with 2 and 5 where there are few. */
export function logTicks(low, high, count) {
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  const factors = last - first <= 2 ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil((last - first) / Math.max(count, 1)));
  const ticks = [];
  for (let power = first; power <= last; power += every) {
    for (const factor of factors) {
      const tick = factor * 10 ** power;
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
    }
  }
  return ticks.length > 1 ? ticks : linearTicks(low, high, count);
}

/** Return a mapping from [low, high] to [from, to], logarithmic or linear, with its inverse. */
export function scale(low, high, from, to, log = false) {
  const place = log ? Math.log10 : (value) => value;
  const back = log ? (value) => 10 ** value : (value) => value;
  const start = place(low);
  const span = place(high) - start || 1;
  const map = (value) => from + ((place(value) - start) / span) * (to - from);
  map.invert = (pixel) => back(start + ((pixel - from) / (to - from || 1)) * span);
  map.low = low;
  map.high = high;
  return map;
}

const SERIES_COLORS = 8;

/** Return the colours of the page's theme, read from the custom properties of `charts.css`. */
export function themeOf(element) {
  const style = getComputedStyle(element);
  const read = (name) => {
    element.style.color = `var(--chart-${name})`;
    return style.color; // resolved, as rgb(...)
  };
  return {
    text: read("text"), muted: read("muted"), grid: read("grid"), axis: read("axis"),
    surface: read("surface"), error: read("error"), warning: read("warning"), info: read("info"),
    onset: read("onset"), good: read("good"), accent: read("accent"), nonfinite: read("nonfinite"),
    missing: read("missing"), font: `11px ${style.getPropertyValue("--chart-font") || "sans-serif"}`,
    series: Array.from({length: SERIES_COLORS}, (_, n) => read(`series-${n + 1}`)),
  };
}

// Viridis and a blue-white-orange scale in nine stops each: readable without red-green vision.
const STOPS = {
  sequential: ["440154", "472c7a", "3b518b", "2c718e", "21908d", "27ad81", "5cc863", "aadc32", "fde725"],
  diverging: ["2166ac", "4393c3", "92c5de", "d1e5f0", "f7f7f7", "fdd9b5", "fdae61", "e66101", "a63603"],
  light: ["f7fbff", "deebf7", "c6dbef", "9ecae1", "6baed6", "4292c6", "2171b5", "08519c", "08306b"],
};

/** Return 256 colours of a palette as bytes: red, green, blue of each. */
export function paletteBytes(name) {
  const stops = (STOPS[name] ?? STOPS.sequential).map((hex) =>
    [0, 2, 4].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)));
  const bytes = new Uint8Array(256 * 3);
  for (let n = 0; n < 256; n += 1) {
    const place = (n / 255) * (stops.length - 1);
    const left = Math.min(Math.floor(place), stops.length - 2);
    for (let part = 0; part < 3; part += 1) {
      const low = stops[left][part];
      bytes[3 * n + part] = low + (stops[left + 1][part] - low) * (place - left);
    }
  }
  return bytes;
}

/** Return charts that share cursor and zoom, and the range `full` of steps if it is given. */
export function chartGroup(full = null) {
  return {cursor: null, range: null, full, members: new Set()};
}

/** Tell all charts of a group that the cursor has moved, or that another range is shown. */
export function tellGroup(group, {moved = false} = {}) {
  for (const member of group.members) {
    if (moved) member.point();
    else member.redraw();
  }
}

/** Return a context for a canvas of a size in CSS pixels, empty. */
function cleared(canvas, width, height, font) {
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = font;
  return context;
}

/**
 * A canvas of fixed height that fills the width of `host`, and a second one above it for the
 * cursor. `draw(context, width, height, theme)` is called when the canvas appears, when its size or
 * the theme changes, and after `redraw()`; `point(context, theme)` as well, and after `point()`.
 * Charts outside of the window are drawn once they are scrolled to.
 */
export function surface(host, height, label, {draw, point}) {
  const canvas = make("canvas", "chart-canvas");
  const overlay = make("canvas", "chart-overlay");
  for (const layer of [canvas, overlay]) layer.style.height = `${height}px`;
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", label);
  overlay.setAttribute("aria-hidden", "true");
  host.append(canvas, overlay);
  let frame = 0;
  let visible = false;
  let isStale = true; // the lower canvas shows something else
  let theme = null;
  function paint() {
    frame = 0;
    const width = canvas.clientWidth;
    if (!visible || !width) return;
    theme ??= themeOf(canvas);
    if (isStale) {
      isStale = false;
      draw(cleared(canvas, width, height, theme.font), width, height, theme);
    }
    point(cleared(overlay, width, height, theme.font), theme);
  }
  function schedule() {
    if (!frame) frame = requestAnimationFrame(paint);
  }
  function redraw() {
    isStale = true;
    schedule();
  }
  function retheme() {
    theme = null;
    redraw();
  }
  const sizes = new ResizeObserver(redraw);
  sizes.observe(canvas);
  const sight = new IntersectionObserver((entries) => {
    visible = entries.at(-1).isIntersecting;
    if (visible) schedule();
  }, {rootMargin: "150px"});
  sight.observe(canvas);
  const themes = new MutationObserver(retheme);
  themes.observe(document.documentElement, {attributes: true, attributeFilter: ["data-theme"]});
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", retheme);
  function destroy() {
    cancelAnimationFrame(frame);
    sizes.disconnect();
    sight.disconnect();
    themes.disconnect();
    dark.removeEventListener("change", retheme);
    host.replaceChildren();
  }
  return {
    canvas, redraw, point: schedule, destroy,
    label: (text) => canvas.setAttribute("aria-label", text),
  };
}

/** A box with lines of text beside the cursor; the lines are read out when keys move the cursor. */
export function tooltip(host) {
  const box = make("div", "chart-tooltip");
  box.hidden = true;
  host.append(box);
  return {
    hide() {
      box.hidden = true;
    },
    /** Show a title and lines of `{color?, name, value}` near x and y, inside of the host. */
    show(x, y, title, lines, spoken = false) {
      box.replaceChildren(make("div", "chart-tooltip-title", title));
      for (const {color, name, value} of lines) {
        const line = make("div", "chart-tooltip-line");
        if (color) {
          const swatch = make("span", "chart-swatch");
          swatch.style.background = color;
          line.append(swatch);
        }
        line.append(make("span", "chart-tooltip-name", name));
        if (value) line.append(make("span", "chart-tooltip-value", value));
        box.append(line);
      }
      box.setAttribute("aria-live", spoken ? "polite" : "off");
      box.hidden = false;
      const width = host.clientWidth;
      const left = x + 14 + box.offsetWidth > width ? x - 14 - box.offsetWidth : x + 14;
      box.style.left = `${Math.max(0, Math.min(left, width - box.offsetWidth))}px`;
      box.style.top = `${Math.max(0, y - box.offsetHeight / 2)}px`;
    },
  };
}

/** Draw a text cut to a width, with an ellipsis in its middle, where names of layers differ least. */
export function fitText(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let keep = Math.max(2, Math.floor((text.length * width) / (context.measureText(text).width || 1)));
  while (keep > 2) {
    const head = Math.ceil((keep - 1) * 0.4);
    const cut = `${text.slice(0, head)}…${text.slice(text.length - (keep - 1 - head))}`;
    if (context.measureText(cut).width <= width) return cut;
    keep -= 1;
  }
  return "…";
}

/** Draw the axis of steps below a plot, with labels that do not overlap. */
export function drawStepAxis(context, theme, x, bottom, {log = false, label = "step", format = formatStep} = {}) {
  const [left, right] = [x(x.low), x(x.high)];
  const room = Math.max(2, Math.floor((right - left) / 90));
  const ticks = log ? logTicks(x.low, x.high, room) : linearTicks(x.low, x.high, room);
  context.strokeStyle = theme.axis;
  context.beginPath();
  context.moveTo(left, bottom + 0.5);
  context.lineTo(right, bottom + 0.5);
  context.stroke();
  context.fillStyle = theme.muted;
  context.textBaseline = "top";
  const name = context.measureText(label).width;
  let free = -Infinity;
  for (const tick of ticks) {
    const text = format(tick);
    const width = context.measureText(text).width;
    const at = Math.min(Math.max(x(tick) - width / 2, left), right - width);
    if (at < free || at + width > right - name - 8) continue;
    context.fillRect(Math.round(x(tick)), bottom, 1, 4);
    context.textAlign = "left";
    context.fillText(text, at, bottom + 6);
    free = at + width + 10;
  }
  context.textAlign = "right";
  context.fillText(label, right, bottom + 6);
}

/** Return the smallest and largest step of a pointer event's chart under the group's zoom. */
export function zoomed(full, group) {
  const range = group.range;
  if (!range) return full;
  const low = Math.max(full[0], range[0]);
  const high = Math.min(full[1], range[1]);
  return high > low ? [low, high] : full;
}
