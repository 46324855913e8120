/**
 * Charts of holter: small, without dependencies, drawn on a canvas, used by the HTML report, the
 * dashboard and the playground. Load `charts.css` beside it. No chart ever sets innerHTML: every
 * name is text.
 *
 * Every function takes an element to fill and one object of data, and returns
 * `{update(data), destroy()}`. `update` merges the given fields into the present data and redraws.
 * The height of a chart is fixed from the start (`height`, in CSS pixels): nothing moves later.
 *
 *   lineChart(element, {
 *     series: [{name, steps, values, color?, dash?, faint?, middle?}],
 *                                   // numbers or typed arrays, by step; `middle`, of a series that
 *                                   // is thinned to extremes: {steps, values} of its means
 *     marks:  [{from, to, kind, text, series?}],  // kind: "error", "warning", "info" or "onset"
 *     references: [{value, text}],                // horizontal lines
 *     label, unit, xLabel = "step",               // label: what the chart shows, for screen readers
 *     log = false, smoothing = 0,                 // smoothing: 0 to 0.99, an exponential mean
 *     xLog = false, points = false, controls = true, height = 240,
 *     group,                                      // of `chartGroup()`: shares cursor and zoom
 *   })
 *   heatMap(element, {
 *     rows, steps, values,          // names; first step of each column; rows x columns, row by row
 *     end,                          // step at which the last column ends
 *     rowLabel, label, unit, palette = "sequential", log = true, domain,  // domain: [low, high]
 *     marks: [{from, to, kind, text, row?}], height, group,
 *     selected, onSelect,           // row index; called with the index of a clicked row
 *   })
 *   layerMap(element, {rows, steps, end, high, low?, chosen, marks, unit, log, domain, rowLabel,
 *                      label, group})
 *                                   // a heat map of `high` with a filter of rows, and the curves
 *                                   // of the `chosen` rows below; `low` and `high` of each cell
 *   ridgeline(element, {steps, edges, counts, label, unit, height})
 *                                   // counts: steps x bins; edges: bins + 1 numbers
 *   bars(element, {items: [{name, value, low?, high?, kind?, text?}],
 *                  reference: {value, text}, label, unit, log = false})
 *   matrix(element, {rows, columns, values, label, rowLabel, columnLabel, text?})
 *   opGraph(element, {nodes: [{id, name, detail?, kind?}], edges: [[from, to, text?]], guilty, label})
 *                                   // kind "spoiled": not finite because of the `guilty` node
 *
 * A step without a reading has no entry in a series. In the cells of a heat map a missing reading
 * is `null`, `undefined` or, in a Float32Array, the NaN with the bits `MISSING_BITS`. Every other
 * NaN and the infinities are data: they are drawn on a rail above the curve, or as cells of their
 * own colour. On a log axis values of 0 and below are marked on a rail at the bottom.
 *
 * Keys, while a chart has the focus: Left and Right move the cursor (with Shift ten times as far),
 * Home and End jump, + and - zoom, Escape resets; L switches between log and linear. Up and Down
 * choose the row of a heat map, Enter selects it. With a pointer: hover, drag to zoom, double click
 * to reset.
 */
export {MISSING_BITS, chartGroup, formatNumber} from "./canvas.js";
export {lineChart} from "./lines.js";
export {heatMap} from "./heat.js";
export {layerMap} from "./layers.js";
export {ridgeline} from "./ridges.js";
export {bars, matrix} from "./bars.js";
export {opGraph} from "./graph.js";
