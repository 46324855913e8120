/** A small curve without axes: the loss of a run in a row of a list. */
const WIDTH = 140;
const HEIGHT = 34;
const NAMES = "http://www.w3.org/2000/svg";

function shape(name, attributes) {
  const element = document.createElementNS(NAMES, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/** Return the picture; steps at which the value is NaN or infinite are marked at the top. */
export function spark(steps, values) {
  const picture = shape("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, class: "spark", role: "img",
    "aria-label": "loss",
  });
  const finite = values.filter(Number.isFinite);
  if (!steps.length) return picture;
  const low = Math.min(...finite);
  const span = Math.max(...finite) - low || 1;
  const first = steps[0];
  const reach = steps[steps.length - 1] - first || 1;
  const x = (place) => 2 + ((WIDTH - 4) * (steps[place] - first)) / reach;
  const y = (value) => HEIGHT - 4 - ((HEIGHT - 9) * (value - low)) / span;
  let path = "";
  let drawn = false;
  values.forEach((value, place) => {
    if (Number.isFinite(value)) {
      path += `${drawn ? "L" : "M"}${x(place).toFixed(1)} ${y(value).toFixed(1)}`;
      drawn = true;
    } else {
      drawn = false;
      picture.append(shape("rect", {x: x(place) - 1, y: 0, width: 2, height: 4, class: "spark-nonfinite"}));
    }
  });
  picture.append(shape("path", {d: path, class: "spark-line"}));
  return picture;
}
