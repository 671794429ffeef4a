// Charts as SVG, from numbers alone.

const SVG = "http://www.w3.org/2000/svg";
const EXPORTED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-family", "opacity"];

export function element(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function canvas(place, height) {
  const width = Math.max(260, Math.round(place.clientWidth));
  return { width, height, svg: element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" }) };
}

export function short(value) {
  if (value === null) return "∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e5) return value.toExponential(1).replace("e+", "e");
  return String(Number(value.toPrecision(3)));
}

// --- Axes ---------------------------------------------------------------------------------------------

function linear([low, high], [from, to]) {
  const scale = (value) => from + ((value - low) / (high - low || 1)) * (to - from);
  const rough = (high - low || 1) / 6;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-9; tick += step) ticks.push(Math.abs(tick) < step / 2 ? 0 : tick);
  return { scale, ticks };
}

function logarithmic([low, high], [from, to]) {
  const [first, last] = [Math.log10(low), Math.log10(high)];
  const scale = (value) => from + ((Math.log10(value) - first) / (last - first || 1)) * (to - from);
  const every = Math.max(1, Math.ceil((last - first) / 6));
  const ticks = [];
  for (let power = Math.ceil(first - 1e-9); power <= last + 1e-9; power += every) ticks.push(10 ** power);
  return { scale, ticks };
}

function axes(svg, frame, across, up, titles) {
  const group = element("g", { class: "axis" });
  for (const tick of up.ticks) {
    const y = up.scale(tick);
    group.append(
      element("line", { x1: frame.left, x2: frame.right, y1: y, y2: y }),
      element("text", { x: frame.left - 6, y: y + 4, "text-anchor": "end" }, short(tick)),
    );
  }
  for (const tick of across.ticks) {
    const x = across.scale(tick);
    group.append(
      element("line", { x1: x, x2: x, y1: frame.bottom, y2: frame.bottom + 4 }),
      element("text", { x, y: frame.bottom + 16, "text-anchor": "middle" }, short(tick)),
    );
  }
  const middle = (frame.left + frame.right) / 2;
  group.append(
    element("text", { class: "title", x: middle, y: frame.bottom + 32, "text-anchor": "middle" }, titles.across),
    element("text", { class: "title", x: frame.left - 40, y: frame.top - 8 }, titles.up),
  );
  svg.append(group);
}

// --- Charts -------------------------------------------------------------------------------------------

export function drawCandidates(place, { names, scores, sensitivities }) {
  const { svg, width, height } = canvas(place, 210);
  svg.setAttribute("aria-label", `Scores and sensitivities of ${names.length} candidates`);
  const frame = { left: 46, right: width - 8, top: 20, bottom: height - 40 };
  const low = Math.min(...scores.map((score, a) => score - sensitivities[a] / 2));
  const high = Math.max(...scores.map((score, a) => score + sensitivities[a] / 2));
  const up = linear([low, high], [frame.bottom, frame.top]);
  const across = linear([0.3, names.length + 0.7], [frame.left, frame.right]);
  across.ticks = across.ticks.filter((tick) => Number.isInteger(tick) && tick > 0);
  axes(svg, frame, across, up, { across: "candidate", up: "score" });
  scores.forEach((score, a) => {
    const x = across.scale(a + 1);
    const half = sensitivities[a] / 2;
    const mark = element(
      "g",
      {},
      element("line", { class: "range", x1: x, x2: x, y1: up.scale(score - half), y2: up.scale(score + half) }),
      element("circle", { class: "dot", cx: x, cy: up.scale(score), r: Math.min(3.5, Math.max(1.6, 180 / names.length)) }),
      element("title", {}, `${names[a]}: score ${short(score)}, sensitivity ${short(sensitivities[a])}`),
    );
    svg.append(mark);
  });
  place.replaceChildren(svg);
}

export function drawBars(place, { label, names, values, color }) {
  const { svg, width, height } = canvas(place, 64);
  svg.setAttribute("aria-label", `Probability of each candidate under ${label}`);
  const tallest = Math.max(...values, 1e-300);
  const step = width / values.length;
  values.forEach((value, a) => {
    const tall = (value / tallest) * (height - 16);
    svg.append(
      element(
        "rect",
        { x: a * step + step * 0.08, y: height - tall, width: Math.max(0.5, step * 0.84), height: tall, fill: color },
        element("title", {}, `${names[a]}: ${short(value)}`),
      ),
    );
  });
  svg.append(
    element("g", { class: "axis" },
      element("line", { x1: 0, x2: width, y1: height - 0.5, y2: height - 0.5 }),
      element("text", { x: width, y: 10, "text-anchor": "end" }, `tallest: ${short(tallest)}`)),
  );
  place.replaceChildren(svg);
}

export function drawLines(place, { series, across: [acrossTitle, acrossKind], up: upTitle, here, label }) {
  const { svg, width, height } = canvas(place, 300);
  svg.setAttribute("aria-label", label);
  const frame = { left: 52, right: width - 10, top: 22, bottom: height - 40 };
  const xs = series.flatMap(({ x }) => x);
  const largest = Math.max(...series.flatMap(({ y }) => y));
  const positive = series.flatMap(({ y }) => y).filter((value) => value > 0);
  // Errors fall towards 0; six orders of magnitude show which mechanism is best.
  const floor = positive.length ? Math.max(Math.min(...positive), largest * 1e-6) : 1e-6;
  const up = logarithmic([floor / 1.3, (largest || 1) * 1.3], [frame.bottom, frame.top]);
  const scale = acrossKind === "log" ? logarithmic : linear;
  const across = scale([Math.min(...xs), Math.max(...xs)], [frame.left, frame.right]);
  axes(svg, frame, across, up, { across: acrossTitle, up: upTitle });
  const at = across.scale(here);
  svg.append(element("line", { class: "here", x1: at, x2: at, y1: frame.top, y2: frame.bottom }));
  for (const { name, x, y, color, dashes } of series) {
    const points = x.map((value, i) => [across.scale(value), up.scale(Math.max(y[i], floor / 1.3))]);
    svg.append(
      element(
        "g",
        {},
        element("polyline", {
          class: "line",
          points: points.map((point) => point.map((part) => part.toFixed(1)).join(",")).join(" "),
          stroke: color,
          "stroke-dasharray": dashes,
        }),
        element("title", {}, name),
      ),
    );
    points.forEach(([px, py], i) => {
      const dot = element("circle", { cx: px, cy: py, r: 7, fill: "transparent" });
      dot.append(element("title", {}, `${name}: ${short(y[i])} at ${short(x[i])}`));
      svg.append(dot);
    });
  }
  place.replaceChildren(svg);
}

export function drawLosses(place, { rows, epsilon }) {
  const line = 36;
  const { svg, width, height } = canvas(place, rows.length * line + 46);
  svg.setAttribute("aria-label", "Exact privacy loss of each mechanism against the neighbour");
  const frame = { left: 4, right: width - 56, top: 6, bottom: height - 40 };
  const finite = rows.map(({ loss }) => loss).filter((loss) => loss !== null);
  const across = linear([0, Math.max(epsilon * 1.15, Math.min(Math.max(...finite), epsilon * 4))], [frame.left, frame.right]);
  axes(svg, frame, across, { scale: () => 0, ticks: [] }, { across: "privacy loss", up: "" });
  rows.forEach(({ name, loss, color, isPrivate }, i) => {
    const y = frame.top + i * line;
    const end = loss === null ? frame.right : Math.min(frame.right, across.scale(loss));
    svg.append(
      element("text", { class: isPrivate ? "name" : "name not-private", x: frame.left, y: y + 12 }, name),
      element("rect", { x: frame.left, y: y + 17, width: Math.max(0, end - frame.left), height: 13, fill: color }),
      element("text", { class: "value", x: end + 5, y: y + 28 }, short(loss)),
    );
  });
  const x = across.scale(epsilon);
  svg.append(element("line", { class: "here", x1: x, x2: x, y1: frame.top, y2: frame.bottom }));
  svg.append(element("g", { class: "mark" }, element("text", { x: x + 4, y: frame.bottom - 4 }, "ε")));
  place.replaceChildren(svg);
}

// --- Files --------------------------------------------------------------------------------------------

export function asFile(svg) {
  const copy = svg.cloneNode(true);
  const originals = svg.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((node, place) => {
    const style = getComputedStyle(originals[place]);
    for (const name of EXPORTED) node.setAttribute(name, style.getPropertyValue(name));
    node.removeAttribute("class");
  });
  const [, , width, height] = svg.getAttribute("viewBox").split(" ");
  const page = getComputedStyle(document.querySelector(".card")).backgroundColor;
  copy.prepend(element("rect", { width, height, fill: page }));
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  return new XMLSerializer().serializeToString(copy);
}
