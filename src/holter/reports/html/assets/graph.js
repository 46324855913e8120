/** Small graphs of operations, from top to bottom, with the guilty one marked. */
import {make} from "./canvas.js";

const SVG = "http://www.w3.org/2000/svg";
const BOX = {width: 190, height: 46, gapX: 26, gapY: 40};
const DEFAULTS = {nodes: [], edges: [], guilty: null, label: ""};

function svg(tag, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  if (text) element.textContent = text;
  return element;
}

/** Return the layer of each node: one more than the deepest that leads to it. */
function layersOf(nodes, edges) {
  const depth = new Map(nodes.map(({id}) => [id, 0]));
  for (let pass = 0; pass < nodes.length; pass += 1) {
    let moved = false;
    for (const [from, to] of edges) {
      if (depth.has(from) && depth.has(to) && depth.get(to) <= depth.get(from)) {
        depth.set(to, depth.get(from) + 1);
        moved = true;
      }
    }
    if (!moved) break;
  }
  return depth;
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

export function opGraph(element, given) {
  let data = {...DEFAULTS, ...given};
  element.classList.add("chart");

  function build() {
    const {nodes, edges, guilty} = data;
    const depth = layersOf(nodes, edges);
    const layers = [];
    for (const node of nodes) (layers[depth.get(node.id)] ??= []).push(node);
    const rows = layers.filter(Boolean);
    const widest = Math.max(1, ...rows.map((row) => row.length));
    const width = widest * (BOX.width + BOX.gapX) + BOX.gapX;
    const height = rows.length * (BOX.height + BOX.gapY) - BOX.gapY + 8;
    const picture = svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", class: "chart-graph"});
    picture.setAttribute("aria-label", data.label);
    const places = new Map();
    const spoiled = new Set(nodes.flatMap(({id, kind}) => (kind === "spoiled" ? [id] : [])));
    rows.forEach((row, r) => row.forEach((node, n) => {
      const free = width - row.length * (BOX.width + BOX.gapX) + BOX.gapX;
      places.set(node.id, {x: free / 2 + n * (BOX.width + BOX.gapX), y: 4 + r * (BOX.height + BOX.gapY)});
    }));
    for (const [from, to, text] of edges) {
      const [a, b] = [places.get(from), places.get(to)];
      if (a && b) drawEdge(picture, a, b, from === guilty || spoiled.has(from), text);
    }
    for (const node of nodes) drawNode(picture, node, places.get(node.id), node.id === guilty);
    const scroller = make("div", "chart-graph-scroller");
    scroller.append(picture);
    element.replaceChildren(scroller);
  }

  function drawEdge(picture, a, b, spoiled, text) {
    const start = [a.x + BOX.width / 2, a.y + BOX.height];
    const stop = [b.x + BOX.width / 2, b.y - 6];
    const middle = (start[1] + stop[1]) / 2;
    const path = `M${start} C${start[0]},${middle} ${stop[0]},${middle} ${stop}`;
    const kind = spoiled ? "chart-edge chart-edge-spoiled" : "chart-edge";
    picture.append(svg("path", {d: path, class: kind}));
    picture.append(svg("path", {d: `M${stop[0] - 4},${stop[1]} h8 l-4,6 z`, class: `${kind} chart-edge-head`}));
    if (text) {
      picture.append(svg("text", {x: (start[0] + stop[0]) / 2 + 6, y: middle + 4, class: "chart-edge-text"}, cut(text, 40)));
    }
  }

  function drawNode(picture, {name, detail, kind}, {x, y}, isGuilty) {
    const group = svg("g", {class: "chart-node", "data-kind": isGuilty ? "guilty" : kind ?? ""});
    group.append(svg("title", {}, [name, detail].filter(Boolean).join("\n")));
    group.append(svg("rect", {x, y, width: BOX.width, height: BOX.height, rx: 7}));
    const middle = x + BOX.width / 2;
    group.append(svg("text", {x: middle, y: y + (detail ? 19 : 28), class: "chart-node-name"}, cut(name, 24)));
    if (detail) group.append(svg("text", {x: middle, y: y + 35, class: "chart-node-detail"}, cut(detail, 32)));
    picture.append(group);
  }

  build();
  return {
    update(changes) {
      data = {...data, ...changes};
      build();
    },
    destroy: () => element.replaceChildren(),
  };
}
