// Charts by Observable Plot (plot.js).

import * as Plot from "/plot.js";
import { number, percent } from "/words.js";

export const MOST_ROWS = 20;

function cut(name, most) {
  return name.length > most ? `${name.slice(0, most - 1)}…` : name;
}

function put(place, options) {
  const width = Math.max(260, place.clientWidth);
  place.replaceChildren(Plot.plot({ width, style: { background: "none", fontSize: "12px" }, ...options }));
  place.firstChild.setAttribute("role", "img");
}

// How often each candidate is picked: a bar for each of two mechanisms, and rings for draws.
export function drawPicks(place, { rows, first, second, label }) {
  const longest = place.clientWidth < 500 ? 16 : 26;
  const names = rows.map(({ name }) => cut(name, longest));
  put(place, {
    ariaLabel: label,
    height: 60 + 25 * rows.length,
    marginLeft: 16 + 7 * Math.max(...names.map((name) => name.length)),
    marginRight: 24,
    marginBottom: 40,
    x: { label: "chance of being picked", labelAnchor: "center", labelArrow: "none", tickFormat: percent, ticks: place.clientWidth / 110, grid: true, zero: true },
    y: { domain: rows.map((row) => row.place), tickFormat: (i) => names[i], label: null, tickSize: 0 },
    marks: [
      Plot.barX(rows, { x: "first", y: "place", insetBottom: 10, fill: first }),
      Plot.barX(rows, { x: "second", y: "place", insetTop: 11, fill: second }),
      Plot.dot(rows.filter(({ drawn }) => drawn !== undefined), { x: "drawn", y: "place", dy: -6, r: 4, fill: "var(--card)", stroke: "currentColor" }),
      Plot.tip(rows, Plot.pointerY({ y: "place", title: "title", frameAnchor: "right", anchor: "right", lineWidth: 16 })),
    ],
  });
}

// Lines against ε. A logarithmic height ends six decades below its top: errors fall towards 0.
export function drawCurves(place, { series, up, here, label }) {
  const points = series.flatMap(({ name, x, y }) => x.map((at, i) => ({ name, at, value: y[i] })));
  const top = Math.max(...points.map(({ value }) => value)) || 1;
  const floor = top / 1e6;
  const height = up.log ? (value) => Math.max(value, floor) : (value) => value;
  put(place, {
    ariaLabel: label,
    height: 300,
    marginLeft: 62,
    marginTop: 28,
    marginBottom: 40,
    x: { type: "log", label: "ε", labelAnchor: "center", labelArrow: "none", tickFormat: number, ticks: 5 },
    y: {
      type: up.log ? "log" : "linear",
      domain: up.log ? [Math.max(floor, Math.min(...points.map(({ value }) => height(value)))), top] : [0, 1],
      label: up.title, labelArrow: "none", tickFormat: up.say, ticks: 5, grid: true,
    },
    marks: [
      Plot.ruleX([here], { stroke: "var(--accent)", strokeDasharray: "4 3" }),
      ...series.map(({ x, y, color, dashes }) =>
        Plot.lineY(x, { x, y: y.map(height), curve: "monotone-x", stroke: color, strokeWidth: 2.2, strokeDasharray: dashes })),
      Plot.tip(points, Plot.pointer({ x: "at", y: ({ value }) => height(value), title: ({ name, at, value }) => `${name}\nε ${number(at)}: ${up.say(value)}` })),
    ],
  });
}

// Scores against sensitivities, with names while there is room for them.
export function drawScores(place, { names, scores, sensitivities }) {
  const candidates = names.map((name, a) => ({ name, score: scores[a], sensitivity: sensitivities[a] }));
  const at = { x: "sensitivity", y: "score" };
  const isRoomy = candidates.length <= MOST_ROWS && place.clientWidth >= 500;
  put(place, {
    ariaLabel: `Scores and sensitivities of ${names.length} candidates`,
    height: 300,
    marginLeft: 62,
    marginTop: 28,
    marginRight: isRoomy ? 110 : 20,
    marginBottom: 40,
    x: { label: "sensitivity", labelAnchor: "center", labelArrow: "none", tickFormat: number, ticks: 5 },
    y: { label: "score", labelArrow: "none", tickFormat: number, ticks: 5, grid: true },
    marks: [
      Plot.dot(candidates, { ...at, r: 3.5, fill: "var(--accent)" }),
      Plot.text(isRoomy ? candidates : [], { ...at, text: ({ name }) => cut(name, 16), dx: 7, textAnchor: "start", fill: "currentColor" }),
      Plot.tip(candidates, Plot.pointer({ ...at, title: ({ name, score, sensitivity }) => `${name}\nscore ${number(score)}, sensitivity ${number(sensitivity)}` })),
    ],
  });
}

// A chart as a file of its own, with the page's colours.
export function asFile(svg) {
  const copy = svg.cloneNode(true);
  const card = getComputedStyle(svg.closest(".card"));
  const paper = document.createElementNS(svg.namespaceURI, "rect");
  for (const [name, value] of Object.entries({ width: "100%", height: "100%", fill: card.backgroundColor })) paper.setAttribute(name, value);
  copy.querySelector("style").after(paper);
  copy.setAttribute("color", card.color);
  const colors = getComputedStyle(svg);
  return new XMLSerializer().serializeToString(copy).replace(/var\((--[\w-]+)\)/g, (_, name) => colors.getPropertyValue(name));
}
