/** Series of a line chart: smoothing, the nearest reading, and the ranges that its axes show. */

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
export function mergedRanges(marks) {
  const merged = [];
  for (const {from, to, kind} of [...marks].sort((a, b) => a.from - b.from)) {
    if (kind === "onset") continue;
    const before = merged.findLast((range) => range.kind === kind);
    if (before && from <= before.to) before.to = Math.max(before.to, to);
    else merged.push({from, to, kind});
  }
  return merged;
}

/** Return the line that stands for a series: the means of its parts if it is thinned. */
export function mainLine(series) {
  return series.middle ?? series;
}

/** Return the first and the last step of some series and marks. */
export function stepRange(series, marks, xLog) {
  let low = Infinity;
  let high = -Infinity;
  for (const {steps} of series) {
    if (!steps.length) continue;
    low = Math.min(low, xLog ? (Array.from(steps).find((step) => step > 0) ?? Infinity) : steps[0]);
    high = Math.max(high, steps[steps.length - 1]);
  }
  for (const {from, to} of marks) {
    if (!xLog || from > 0) low = Math.min(low, from);
    high = Math.max(high, to);
  }
  if (!(low <= high)) return xLog ? [1, 10] : [0, 1];
  if (low === high) return xLog ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
  return [low, high];
}

/** Return the range of values between two steps with some space, and whether it is logarithmic. */
export function valueRange(series, references, first, last, wantsLog) {
  let low = Infinity;
  let high = -Infinity;
  let least = Infinity; // the smallest positive one
  const see = (value) => {
    if (!Number.isFinite(value)) return;
    if (value < low) low = value;
    if (value > high) high = value;
    if (value > 0 && value < least) least = value;
  };
  for (const {steps, values} of series) {
    for (let i = 0; i < steps.length; i += 1) {
      if (steps[i] >= first && steps[i] <= last) see(values[i]);
    }
  }
  for (const {value} of references) see(value);
  const log = wantsLog && least < Infinity;
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

/** Return whether any reading is NaN or infinite. */
export function hasOdd(series) {
  return series.some(({values}) => {
    for (let i = 0; i < values.length; i += 1) if (!Number.isFinite(values[i])) return true;
    return false;
  });
}
