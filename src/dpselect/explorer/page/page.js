// The page: its state, its requests to the server, and how it shows the answers.

import { Grid, LARGEST_FILE, MOST_CANDIDATES, readTable } from "/candidates.js";
import { MOST_ROWS, asFile, drawCurves, drawPicks, drawScores } from "/charts.js";
import { error, number, percent, readable, several } from "/words.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const LOGARITHMIC = { toValue: (at) => 10 ** at, toPlace: Math.log10, say: number };
const LINEAR = { toValue: (at) => at, toPlace: (value) => value, say: number };
const SLIDERS = { epsilon: LOGARITHMIC, tilt: LINEAR, drop: { ...LINEAR, say: kept }, beta: LOGARITHMIC, gamma: LOGARITHMIC };
const DEFAULTS = { epsilon: 1, tilt: 1, drop: 0.75, beta: 0.05, gamma: 0.05 };
const CHOICES = { mechanism: "heterogeneous-rnm", other: "gem" };
const PARAMETERS = ["tilt", "keep", "beta", "gamma"];
const FOLDED = ["tilts", "correlations", "losses", "advice"]; // what the server leaves out unless it is unfolded

// Which sensitivities may compete, in words.
function kept(drop) {
  if (!drop) return "all candidates";
  return `the ${drop > 0 ? "least" : "most"} sensitive ${percent(1 - Math.abs(drop))}`;
}

const $ = (id) => document.getElementById(id);
const state = { scenario: "", ...DEFAULTS, ...CHOICES, names: [], scores: [], sensitivities: [], neighbour: [] };
let scenarios = [];
let mechanisms = {};
let answer = null;
let drawn = null; // how often each candidate was picked in the latest draws

function make(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// --- State and address --------------------------------------------------------------------------------

// The state is in the part after '#', which browsers do not send: no server and no log sees it.
function writeAddress() {
  const fields = new URLSearchParams();
  if (state.scenario) fields.set("scenario", state.scenario);
  else fields.set("candidates", JSON.stringify(state.names.map((name, a) => [name, state.scores[a], state.sensitivities[a]])));
  for (const name of [...Object.keys(SLIDERS), ...Object.keys(CHOICES)]) fields.set(name, state[name]);
  if (hasNeighbour()) fields.set("neighbour", JSON.stringify(state.neighbour));
  history.replaceState(null, "", `#${fields}`);
}

function hasNeighbour() {
  return state.neighbour.some((score, a) => score !== state.scores[a]);
}

function readAddress() {
  const fields = new URLSearchParams(location.hash.slice(1));
  for (const [name, { toPlace }] of Object.entries(SLIDERS)) {
    const value = Number(fields.get(name) ?? DEFAULTS[name]);
    const place = toPlace(value);
    const { min, max } = $(name);
    const sound = Number.isFinite(place) && place >= Number(min) - 1e-9 && place <= Number(max) + 1e-9;
    state[name] = sound ? value : DEFAULTS[name];
  }
  for (const [name, choice] of Object.entries(CHOICES)) {
    const wanted = fields.get(name);
    state[name] = [...$(name).options].some(({ value }) => value === wanted) ? wanted : choice;
  }
  try {
    if (fields.has("candidates")) {
      setCandidates(JSON.parse(fields.get("candidates")).map(([name, score, sensitivity]) => [String(name), Number(score), Number(sensitivity)]));
      state.scenario = "";
    } else {
      chooseScenario(fields.get("scenario"));
    }
    if (fields.has("neighbour")) {
      const neighbour = JSON.parse(fields.get("neighbour")).map(Number);
      if (neighbour.length === state.scores.length) state.neighbour = neighbour;
      $("fold-losses").open = true;
    }
  } catch {
    chooseScenario(null);
    $("link-note").textContent = "The candidates in the link could not be read, so this is the first example.";
  }
}

function chooseScenario(id) {
  const { id: found, names, scores, sensitivities } = scenarios.find((one) => one.id === id) ?? scenarios[0];
  state.scenario = found;
  setCandidates(scores.map((score, a) => [names?.[a] ?? String(a + 1), score, sensitivities[a]]));
}

function setCandidates(rows) {
  const [names, scores, sensitivities] = [0, 1, 2].map((column) => rows.map((row) => row[column]));
  Object.assign(state, { names, scores, sensitivities, neighbour: [...scores] });
}

// --- Requests -------------------------------------------------------------------------------------------

let asking = false;
let waiting = false;
let settled = 0;
let changedAt = 0;

// The address, and what a screen reader says, follow when the hand rests.
function changed() {
  drawn = null;
  changedAt ||= performance.now();
  $("answer").setAttribute("aria-busy", "true");
  clearTimeout(settled);
  settled = setTimeout(() => {
    $("answer").removeAttribute("aria-busy");
    writeAddress();
  }, 400);
  return refresh();
}

// One request at a time. While it runs, only the newest setting waits.
async function refresh() {
  waiting = true;
  if (asking) return;
  asking = true;
  while (waiting) {
    waiting = false;
    await ask();
  }
  asking = false;
  await new Promise(requestAnimationFrame);
  document.body.dataset.milliseconds = Math.round(performance.now() - (changedAt || performance.now()));
  document.body.dataset.answers = Number(document.body.dataset.answers ?? 0) + 1;
  changedAt = 0;
}

async function ask() {
  const { scenario, mechanism, other, ...setting } = state;
  const unfolded = FOLDED.filter((part) => $(`fold-${part}`).open);
  const slow = setTimeout(() => complain("Still computing. The first long look compiles code, once: up to a minute."), 2000);
  try {
    const body = JSON.stringify({ ...setting, chosen: [mechanism, other], unfolded });
    const response = await fetch("/view", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    const result = await response.json();
    complain(result.error ? `Not drawn: ${result.error}.` : "");
    if (!result.error) {
      answer = result;
      show();
    }
  } catch {
    complain("The explorer does not answer. Is `dpselect explore` still running?");
  }
  clearTimeout(slow);
}

function complain(text) {
  $("problem").textContent = text;
  $("problem").hidden = !text;
}

// --- Showing ------------------------------------------------------------------------------------------

const grid = new Grid($("rows"), {
  state,
  onEdit: (field) => (field === "neighbour" ? changed() : ownCandidates()),
  onProblem: complain,
  onMove: (row) => {
    $("remove").textContent = `Remove “${state.names[row]}”`;
  },
});

function showSettings() {
  $("scenario").value = state.scenario;
  $("about").textContent = scenarios.find((one) => one.id === state.scenario)?.about ?? "";
  for (const name of Object.keys(CHOICES)) $(name).value = state[name];
  for (const [name, { toPlace }] of Object.entries(SLIDERS)) {
    $(name).value = toPlace(state[name]);
    showSlider(name);
  }
}

function showSlider(name) {
  const words = SLIDERS[name].say(state[name]);
  $(`${name}-value`).textContent = words;
  $(name).setAttribute("aria-valuetext", words);
}

function showRows() {
  $("count").textContent = `(${state.names.length})`;
  const withNeighbour = $("fold-losses").open;
  $("neighbour-title").hidden = !withNeighbour;
  $("add").disabled = state.names.length >= MOST_CANDIDATES;
  $("remove").disabled = state.names.length <= 2;
  grid.show({ withNeighbour });
}

function ownCandidates() {
  state.scenario = "";
  showSettings();
  changed();
}

// A mechanism's colour, lightened on dark pages.
function color(name) {
  const { color: hex } = mechanisms[name];
  if (!dark.matches) return hex;
  const channels = [1, 3, 5].map((at) => Math.round(Number.parseInt(hex.slice(at, at + 2), 16) * 0.55 + 255 * 0.45));
  return `#${channels.map((channel) => channel.toString(16).padStart(2, "0")).join("")}`;
}

function label(name) {
  const { label: text, private: isPrivate } = mechanisms[name];
  if (name === "uniform") return "a random pick";
  return isPrivate ? text : `${text} (not private)`;
}

function legend(place, entries) {
  place.replaceChildren(...entries.map(({ name, color: ink, mark }) => {
    const sample = make("b", { textContent: mark, ariaHidden: "true" });
    sample.style.color = ink;
    return make("span", {}, sample, ` ${name}`);
  }));
}

function show() {
  const chosen = [...new Set([state.mechanism, state.other])];
  const needed = chosen.flatMap((name) => mechanisms[name].parameters);
  for (const name of PARAMETERS) $(`${name}-field`).hidden = !needed.includes(name);
  showAnswer(chosen);
  showPicks();
  showCurves("chances", answer.curves, { title: "ε", log: true, here: state.epsilon }, "chances");
  showMechanisms(chosen);
  if ($("fold-errors").open) showCurves("errors", answer.curves, { title: "ε", log: true, here: state.epsilon }, "errors");
  if (answer.tilts) {
    const any = Object.keys(answer.tilts).length > 0;
    $("tilts-note").hidden = any;
    if (any) showCurves("tilts", answer.tilts, { title: "tilt", log: false, here: state.tilt }, "chances");
    else $("tilts-chart").replaceChildren();
    $("tilts-legend").hidden = !any;
  }
  if (answer.correlations) showScores();
  if (answer.losses) showLosses();
  if (answer.advice) showAdvice();
  $("snippet").textContent = answer.snippets[state.mechanism];
}

function best() {
  const top = Math.max(...state.scores);
  return state.names.filter((_, a) => state.scores[a] === top);
}

function showAnswer(chosen) {
  const many = best().length;
  const finds = many > 1 ? `one of the ${many} best candidates` : "the best candidate";
  const say = (name) => [make("b", { textContent: `${label(name)} ` }), make("b", { textContent: percent(answer.chances[name]), className: "figure" })];
  const [[name, first], second] = [say(chosen[0]), chosen[1] ? say(chosen[1]) : []];
  $("answer").replaceChildren(
    `With these candidates and ε\u00a0=\u00a0${number(state.epsilon)}, `, name, `finds ${finds} `, first, " of the time",
    ...(second.length ? ["; ", ...second] : []), ".",
  );
  const safe = Object.keys(answer.chances).filter((other) => mechanisms[other].private);
  const top = safe.reduce((one, other) => (answer.chances[other] > answer.chances[one] ? other : one));
  $("context").textContent = `The most successful private mechanism here is ${label(top)}: ${percent(answer.chances[top])}. A random pick: ${percent(answer.chances.uniform)}.`;
}

// The best candidates by score, and the rest together.
function showPicks() {
  const [first, second] = [state.mechanism, state.other].map((name) => answer.probabilities[name]);
  const order = state.scores.map((_, a) => a).sort((a, b) => state.scores[b] - state.scores[a] || a - b);
  const cut = order.length > MOST_ROWS ? MOST_ROWS - 1 : order.length;
  const sum = (values, places) => Math.min(1, places.reduce((total, a) => total + values[a], 0));
  const row = (name, places, place) => {
    const counts = { first: sum(first, places), second: sum(second, places), drawn: drawn ? sum(drawn.map((count) => count / drawn.total), places) : undefined };
    const title = [name, `${label(state.mechanism)}: ${percent(counts.first)}`, `${label(state.other)}: ${percent(counts.second)}`];
    return { name, place, ...counts, title: title.join("\n") };
  };
  const rows = order.slice(0, cut).map((a, place) => row(state.names[a], [a], place));
  const others = order.slice(cut);
  if (others.length) rows.push(row(`${others.length} others`, others, cut));
  legend($("picks-legend"), [
    { name: label(state.mechanism), color: color(state.mechanism), mark: "▬" },
    { name: label(state.other), color: color(state.other), mark: "▬" },
    ...(drawn ? [{ name: "drawn", color: "inherit", mark: "○" }] : []),
  ]);
  const summary = rows.slice(0, 3).map(({ name, first: chance }) => `${name} ${percent(chance)}`).join(", ");
  drawPicks($("picks-chart"), {
    rows, first: color(state.mechanism), second: color(state.other),
    label: `Chance of each candidate under ${label(state.mechanism)}, best score first: ${summary}`,
  });
  $("picks-note").textContent = others.length ? `Best score first; the ${others.length} candidates with lower scores are together.` : "Best score first.";
}

function showCurves(id, curves, across, field) {
  const series = Object.entries(curves).map(([name, curve], i) => ({
    name: label(name), x: curve.places, y: curve[field], color: color(name),
    dashes: name === "uniform" ? "2 4" : i ? "8 4" : null, mark: name === "uniform" ? "┈┈" : i ? "╌╌" : "━━",
  }));
  const log = field === "errors";
  const title = log ? "mean squared error" : "chance of the best";
  const say = log ? number : percent;
  legend($(`${id}-legend`), series);
  drawCurves($(`${id}-chart`), {
    series, across, up: { title, log, say: (value) => say(value) }, here: across.here,
    label: `${title} against ${across.title}: ${series.map(({ name, y }) => `${name} from ${say(y[0])} to ${say(y.at(-1))}`).join(", ")}`,
  });
}

// A table of mechanisms, with a bar for each number from 0 to 1.
function showMeters(place, rows) {
  place.replaceChildren(...rows.map(({ name, share, cells, chosen }) => {
    const bar = make("div", { className: "bar" });
    bar.style.width = `${100 * Math.min(1, share)}%`;
    bar.style.background = color(name);
    const title = make("th", { scope: "row", textContent: label(name) });
    if (!mechanisms[name].private) title.className = "warn";
    return make("tr", { className: chosen ? "chosen" : "" }, title, make("td", {}, cells[0] ?? "", bar), make("td", { textContent: cells[1] }));
  }));
}

function showMechanisms(chosen) {
  const worst = (Math.max(...state.scores) - Math.min(...state.scores)) ** 2;
  const names = Object.keys(answer.chances).sort((a, b) => answer.chances[b] - answer.chances[a]);
  showMeters($("mechanisms"), names.map((name) => ({
    name, share: answer.chances[name], chosen: chosen.includes(name),
    cells: [percent(answer.chances[name]), error(answer.errors[name], worst)],
  })));
}

function showLosses() {
  showMeters($("losses"), Object.entries(answer.losses).map(([name, loss]) => ({
    name, share: loss === null ? 1 : loss / state.epsilon, cells: ["", loss === null || loss >= 0.001 ? number(loss) : loss ? "less than 0.001" : "0"],
  })));
}

function showScores() {
  const words = Object.entries(answer.correlations).map(([name, value]) => `${name} ${value === null ? "undefined" : value.toFixed(2).replace("-", "−")}`);
  $("correlations").textContent = `If they do, GEM does well. If good candidates have large sensitivities, modified GEM or random stopping does. Correlation of score and sensitivity, from −1 to 1: ${words.join(", ")}.`;
  drawScores($("scores-chart"), state);
}

function showAdvice() {
  const { ranking, words, warnings } = answer.advice;
  $("advice").replaceChildren(
    make("p", { textContent: "By mean squared error, among more settings than the table has:" }),
    make("ol", {}, ...ranking.map(({ text, error: value }) => make("li", { textContent: `${text} (${number(value)})` }))),
    ...words.map((text) => make("p", { textContent: readable(text) })),
    ...warnings.map((text) => make("p", { textContent: readable(text), className: "warn" })),
  );
}

// --- Draws ----------------------------------------------------------------------------------------------

function draw(times) {
  const chances = answer.probabilities[state.mechanism];
  drawn = chances.map(() => 0);
  drawn.total = times;
  let last = 0;
  for (let i = 0; i < times; i++) {
    let left = Math.random();
    last = chances.findIndex((chance) => (left -= chance) < 0);
    if (last < 0) last = chances.indexOf(Math.max(...chances)); // the chances' sum was rounded
    drawn[last] += 1;
  }
  const top = Math.max(...state.scores);
  const hits = drawn.reduce((sum, count, a) => sum + (state.scores[a] === top ? count : 0), 0);
  const one = best().length > 1 ? "one of the best" : "the best";
  const name = label(state.mechanism).replace(/^./, (letter) => letter.toUpperCase());
  $("drawn").textContent = times === 1
    ? `${name} picked “${state.names[last]}”, ${hits ? `${one}.` : `with score ${number(state.scores[last])}. The best has ${number(top)}.`}`
    : `${name} picked ${one} ${several(hits, "time")} in ${times.toLocaleString("en")}.`;
  showPicks();
}

// --- Files --------------------------------------------------------------------------------------------

function save(name, text, kind) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: kind })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

async function read(what, size, text) {
  $("reading").className = "soft";
  $("reading").textContent = `Reading ${what}…`;
  try {
    if (size > LARGEST_FILE) throw new Error(`it is larger than ${LARGEST_FILE / 1024} KB`);
    setCandidates(readTable(await text()));
    $("reading").textContent = `Read ${several(state.names.length, "candidate")} from ${what}.`;
    ownCandidates();
    showRows();
  } catch (problem) {
    $("reading").className = "problem";
    $("reading").textContent = `Could not use ${what}: ${problem.message}.`;
  }
}

// --- Wiring -------------------------------------------------------------------------------------------

function on(id, event, action) {
  $(id).addEventListener(event, action);
}

function wire() {
  for (const [name, { toValue }] of Object.entries(SLIDERS)) {
    on(name, "input", () => {
      state[name] = Number(toValue(Number($(name).value)).toPrecision(3));
      showSlider(name);
      changed();
    });
  }
  for (const name of Object.keys(CHOICES)) {
    on(name, "change", () => {
      state[name] = $(name).value;
      changed();
    });
  }
  on("scenario", "change", () => {
    chooseScenario($("scenario").value);
    $("reading").textContent = "";
    showSettings();
    showRows();
    changed();
  });
  on("use", "click", () => read("the pasted table", $("paste").value.length, () => $("paste").value));
  on("grid", "paste", (event) => {
    if (event.target.matches("input")) return;
    const text = event.clipboardData.getData("text/plain");
    read("the pasted table", text.length, () => text);
  });
  on("upload", "change", async () => {
    const file = $("upload").files[0];
    if (file) await read(file.name, file.size, () => file.text());
    $("upload").value = "";
  });
  on("add", "click", () => {
    const fresh = { names: `candidate ${state.names.length + 1}`, scores: 0, sensitivities: 1, neighbour: 0 };
    for (const [field, value] of Object.entries(fresh)) state[field].push(value);
    ownCandidates();
    showRows();
    grid.focus(state.names.length - 1, 0);
  });
  on("remove", "click", () => {
    for (const field of ["names", "scores", "sensitivities", "neighbour"]) state[field].splice(grid.row, 1);
    ownCandidates();
    showRows();
  });
  on("draw-one", "click", () => draw(1));
  on("draw-many", "click", () => draw(1000));
  on("worst", "click", moveNeighbour);
  on("link", "click", async () => {
    writeAddress();
    await navigator.clipboard.writeText(location.href).catch(() => {});
    $("link-note").textContent = state.scenario
      ? "Copied the address of this page."
      : "Copied. The link contains your candidates with their scores: share it only with people who may see them.";
  });
  on("copy", "click", () => navigator.clipboard.writeText($("snippet").textContent).catch(() => {}));
  on("save-code", "click", () => save("pick.py", $("snippet").textContent, "text/x-python"));
  for (const fold of document.querySelectorAll("details.card")) {
    fold.addEventListener("toggle", () => {
      if (fold.id === "fold-losses" && fold.open && !hasNeighbour()) moveNeighbour();
      else if (fold.open) refresh();
      if (fold.id === "fold-losses") showRows();
    });
  }
  for (const chart of document.querySelectorAll(".chart")) {
    const name = chart.id.replace("-chart", "");
    const button = make("button", { type: "button", className: "save", textContent: "Save as SVG", ariaLabel: `Save the chart of ${name} as SVG` });
    button.addEventListener("click", () => save(`${name}.svg`, asFile(chart.querySelector("svg")), "image/svg+xml"));
    chart.after(button);
  }
  let resized = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(resized);
    resized = requestAnimationFrame(() => answer && show());
  });
  dark.addEventListener("change", () => answer && show());
  addEventListener("hashchange", () => {
    readAddress();
    showSettings();
    showRows();
    refresh();
  });
}

// Lower the best score by its sensitivity and raise all others by theirs: often close to the worst neighbour.
function moveNeighbour() {
  const top = state.scores.indexOf(Math.max(...state.scores));
  state.neighbour = state.scores.map((score, a) => score + (a === top ? -1 : 1) * state.sensitivities[a]);
  showRows();
  changed();
}

async function start() {
  [scenarios, mechanisms] = await Promise.all(["/scenarios.json", "/mechanisms.json"].map(async (name) => (await fetch(name)).json()));
  $("scenario").append(...scenarios.map(({ id, title }) => new Option(title, id)), new Option("your own candidates", ""));
  $("scenario").lastElementChild.disabled = true;
  for (const name of Object.keys(CHOICES)) $(name).append(...Object.keys(mechanisms).map((one) => new Option(label(one), one)));
  wire();
  readAddress();
  showSettings();
  showRows();
  await refresh();
}

start();
