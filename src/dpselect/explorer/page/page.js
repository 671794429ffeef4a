// The page: its state, its requests to the server, and how it shows the answers.

import { asFile, drawBars, drawCandidates, drawLines, drawLosses, short } from "/charts.js";

// Colours come with each mechanism. Dashes tell apart mechanisms of one family.
const DASHES = ["", "7 3", "2 3", "7 2 2 2"];
const dark = matchMedia("(prefers-color-scheme: dark)");
const LARGEST_FILE = 256 * 1024;
const MOST_CANDIDATES = 400;
const SLIDERS = {
  epsilon: { toValue: (at) => 10 ** at, toPlace: Math.log10 },
  tilt: { toValue: (at) => at, toPlace: (value) => value },
  drop: { toValue: (at) => at, toPlace: (value) => value, say: kept },
  beta: { toValue: (at) => 10 ** at, toPlace: Math.log10 },
  gamma: { toValue: (at) => 10 ** at, toPlace: Math.log10 },
};
const DEFAULTS = { epsilon: 1, tilt: -1, drop: 0.75, beta: 0.05, gamma: 0.05 };

// Which sensitivities may compete, in words.
function kept(drop) {
  if (!drop) return "all candidates";
  return `the ${drop > 0 ? "least" : "most"} sensitive ${Math.round(100 * (1 - Math.abs(drop)))} %`;
}

const $ = (id) => document.getElementById(id);
const state = { scenario: "", ...DEFAULTS, names: [], scores: [], sensitivities: [], neighbour: [] };
let scenarios = [];
let answer = null;

// --- State and address --------------------------------------------------------------------------------

// The state is in the part after '#', which browsers do not send: no server and no log sees it.
function writeAddress() {
  const fields = new URLSearchParams();
  if (state.scenario) fields.set("scenario", state.scenario);
  else fields.set("candidates", JSON.stringify(state.names.map((name, a) => [name, state.scores[a], state.sensitivities[a]])));
  for (const name of Object.keys(SLIDERS)) fields.set(name, short(state[name]));
  const moved = state.neighbour.some((score, a) => score !== state.scores[a]);
  if (moved) fields.set("neighbour", JSON.stringify(state.neighbour));
  history.replaceState(null, "", `#${fields}`);
}

function readAddress() {
  const fields = new URLSearchParams(location.hash.slice(1));
  for (const name of Object.keys(SLIDERS)) {
    const value = Number(fields.get(name) ?? DEFAULTS[name]);
    const place = SLIDERS[name].toPlace(value);
    const { min, max } = $(name);
    const sound = Number.isFinite(place) && place >= Number(min) - 1e-9 && place <= Number(max) + 1e-9;
    state[name] = sound ? value : DEFAULTS[name];
  }
  try {
    if (fields.has("candidates")) {
      const rows = JSON.parse(fields.get("candidates"));
      setCandidates(rows.map(([name]) => String(name)), rows.map((row) => Number(row[1])), rows.map((row) => Number(row[2])));
      state.scenario = "";
    } else {
      chooseScenario(fields.get("scenario"));
    }
    if (fields.has("neighbour")) {
      const neighbour = JSON.parse(fields.get("neighbour")).map(Number);
      if (neighbour.length === state.scores.length) state.neighbour = neighbour;
    }
  } catch {
    chooseScenario(null);
    $("link-note").textContent = "The candidates in the link could not be read, so this is the first scenario.";
  }
}

function chooseScenario(id) {
  const scenario = scenarios.find((one) => one.id === id) ?? scenarios[0];
  state.scenario = scenario.id;
  setCandidates(scenario.scores.map((_, a) => String(a + 1)), scenario.scores, scenario.sensitivities);
}

function setCandidates(names, scores, sensitivities) {
  Object.assign(state, { names: [...names], scores: [...scores], sensitivities: [...sensitivities], neighbour: [...scores] });
}

// --- Requests -------------------------------------------------------------------------------------------

let asking = false;
let waiting = false;

// One request at a time. While it runs, only the newest setting waits.
async function refresh() {
  if (asking) {
    waiting = true;
    return;
  }
  asking = true;
  const started = performance.now();
  do {
    waiting = false;
    await ask();
  } while (waiting);
  asking = false;
  document.body.dataset.milliseconds = Math.round(performance.now() - started);
  document.body.dataset.answers = Number(document.body.dataset.answers ?? 0) + 1;
}

async function ask() {
  const { names, scores, sensitivities, neighbour, epsilon, tilt, drop, beta, gamma } = state;
  try {
    const body = JSON.stringify({ names, scores, sensitivities, neighbour, epsilon, tilt, drop, beta, gamma });
    const response = await fetch("/view", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    const result = await response.json();
    if (result.error) {
      complain(`Not drawn: ${result.error}.`);
    } else {
      answer = result;
      complain("");
      show();
    }
  } catch {
    complain("The explorer does not answer. Is `dpselect explore` still running?");
  }
}

function complain(text) {
  $("problem").textContent = text;
  $("problem").hidden = !text;
}

function changed() {
  writeAddress();
  refresh();
}

// --- Showing ------------------------------------------------------------------------------------------

function showSettings() {
  $("scenario").value = state.scenario;
  const scenario = scenarios.find((one) => one.id === state.scenario);
  $("about").textContent = scenario ? scenario.about : "Your own candidates.";
  for (const [name, { toPlace }] of Object.entries(SLIDERS)) {
    $(name).value = toPlace(state[name]);
    $(`${name}-value`).textContent = (SLIDERS[name].say ?? short)(state[name]);
  }
}

function showRows() {
  $("count").textContent = `(${state.names.length})`;
  $("rows").replaceChildren(...state.names.map((_, a) => row(a)));
}

function row(a) {
  const made = document.createElement("tr");
  for (const field of ["names", "scores", "sensitivities", "neighbour"]) {
    const input = document.createElement("input");
    const numeric = field !== "names";
    input.value = numeric ? Number(state[field][a].toPrecision(6)) : state[field][a];
    input.setAttribute("aria-label", `${field === "names" ? "name" : field} of candidate ${a + 1}`);
    if (numeric) input.inputMode = "decimal";
    input.addEventListener("change", () => edit(field, a, input));
    const cell = document.createElement("td");
    cell.append(input);
    made.append(cell);
  }
  const remove = document.createElement("button");
  remove.type = "button";
  remove.textContent = "×";
  remove.setAttribute("aria-label", `Remove candidate ${a + 1}`);
  remove.addEventListener("click", () => {
    for (const field of ["names", "scores", "sensitivities", "neighbour"]) state[field].splice(a, 1);
    ownCandidates();
  });
  const cell = document.createElement("td");
  cell.append(remove);
  made.append(cell);
  return made;
}

function edit(field, a, input) {
  const text = input.value.trim();
  const value = field === "names" ? text : Number(text);
  const wrong = field !== "names" && (text === "" || !Number.isFinite(value) || (field === "sensitivities" && value < 0));
  input.setAttribute("aria-invalid", wrong);
  if (wrong) {
    complain(`Not drawn: candidate ${a + 1} needs a number${field === "sensitivities" ? " ≥ 0" : ""}.`);
    return;
  }
  state[field][a] = value;
  if (field === "scores") state.neighbour[a] = value;
  if (field === "neighbour") changed();
  else ownCandidates();
}

function ownCandidates() {
  state.scenario = "";
  showSettings();
  showRows();
  changed();
}

// A mechanism's colour, lightened on dark pages.
function color(name) {
  const { color: hex } = answer.mechanisms[name];
  if (!dark.matches) return hex;
  const channels = [1, 3, 5].map((at) => Math.round(Number.parseInt(hex.slice(at, at + 2), 16) * 0.55 + 255 * 0.45));
  return `#${channels.map((channel) => channel.toString(16).padStart(2, "0")).join("")}`;
}

function dashes(name) {
  const { family } = answer.mechanisms[name];
  const relatives = Object.keys(answer.mechanisms).filter((other) => answer.mechanisms[other].family === family);
  return DASHES[relatives.indexOf(name) % DASHES.length];
}

function lines(curves, pick) {
  return Object.entries(curves).map(([name, curve]) => ({ ...pick(name, curve), color: color(name), dashes: dashes(name) }));
}

function legend(place, series) {
  place.replaceChildren(
    ...series.map(({ name, color, dashes }) => {
      const entry = document.createElement("span");
      const sample = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      sample.setAttribute("viewBox", "0 0 30 10");
      const stroke = document.createElementNS("http://www.w3.org/2000/svg", "line");
      const parts = { x1: 0, x2: 30, y1: 5, y2: 5, stroke: color, "stroke-width": 2.5, "stroke-dasharray": dashes };
      for (const [key, value] of Object.entries(parts)) stroke.setAttribute(key, value);
      sample.append(stroke);
      entry.append(sample, name);
      return entry;
    }),
  );
}

function label(name) {
  const { label: text, private: isPrivate } = answer.mechanisms[name];
  return isPrivate ? text : `${text} (not private)`;
}

function show() {
  drawCandidates($("candidates-chart"), state);
  showCorrelations();
  showProbabilities();
  const errors = lines(answer.curves, (name, { epsilons, errors }) => ({ name: label(name), x: epsilons, y: errors }));
  drawLines($("errors-chart"), {
    series: errors,
    across: ["privacy budget ε", "log"],
    up: "mean squared error",
    here: state.epsilon,
    label: "Mean squared error of each mechanism against the privacy budget",
  });
  legend($("errors-legend"), errors);
  const tilts = lines(answer.tilts, (name, { label: text, tilts: x, errors: y }) => ({ name: text, x, y }));
  drawLines($("tilts-chart"), {
    series: tilts,
    across: ["tilt", "linear"],
    up: "mean squared error",
    here: state.tilt,
    label: "Mean squared error against the tilt",
  });
  legend($("tilts-legend"), tilts);
  drawLosses($("losses-chart"), {
    epsilon: state.epsilon,
    rows: Object.entries(answer.losses).map(([name, loss]) => ({
      name: label(name),
      loss,
      color: color(name),
      isPrivate: answer.mechanisms[name].private,
    })),
  });
  showAdvice();
  showSnippet();
}

function showCorrelations() {
  const words = Object.entries(answer.correlations).map(
    ([name, value]) => `${name} ${value === null ? "undefined" : value.toFixed(2)}`,
  );
  $("correlations").textContent = `Correlation of the two: ${words.join(", ")}.`;
}

function showProbabilities() {
  const rivals = Object.entries(answer.errors).filter(([name]) => answer.mechanisms[name].private);
  const least = Math.min(...rivals.map(([, error]) => error));
  const entries = Object.entries(answer.probabilities).map(([name, values]) => {
    const box = document.createElement("div");
    const title = document.createElement("h3");
    const error = document.createElement("output");
    error.textContent = short(answer.errors[name]);
    title.append(label(name), error);
    title.classList.toggle("best", answer.mechanisms[name].private && answer.errors[name] === least);
    title.classList.toggle("warn", !answer.mechanisms[name].private);
    const chart = document.createElement("div");
    box.append(title, chart);
    return { box, chart, name, values };
  });
  $("probabilities").replaceChildren(...entries.map(({ box }) => box));
  for (const { chart, name, values } of entries) {
    drawBars(chart, { label: label(name), names: state.names, values, color: color(name) });
  }
}

function showAdvice() {
  const { ranking, words, warnings } = answer.advice;
  const list = document.createElement("ol");
  list.className = "advice";
  for (const { text, error } of ranking) {
    const item = document.createElement("li");
    item.textContent = `${text}: mean squared error ${short(error)}`;
    list.append(item);
  }
  const paragraphs = [...words.map((text) => [text, ""]), ...warnings.map((text) => [text, "warn"])].map(([text, kind]) => {
    const paragraph = document.createElement("p");
    paragraph.textContent = text;
    if (kind) paragraph.className = kind;
    return paragraph;
  });
  $("advice").replaceChildren(list, ...paragraphs);
}

function showSnippet() {
  if (!$("mechanism").options.length) {
    $("mechanism").append(...Object.keys(answer.mechanisms).map((name) => new Option(label(name), name)));
  }
  $("snippet").textContent = answer.snippets[$("mechanism").value];
}

// --- Files --------------------------------------------------------------------------------------------

function save(name, text, kind) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

// Quoted fields, as spreadsheets write them.
function cells(line) {
  const found = [...line.matchAll(/("((?:[^"]|"")*)"|[^,;]*)([,;]|$)/g)];
  const last = found.findIndex((match) => match[3] === "");
  return found.slice(0, last + 1).map((match) => (match[2] === undefined ? match[1] : match[2].replaceAll('""', '"')).trim());
}

function readTable(text) {
  const rows = text.replace(/^\uFEFF/, "").split(/\r\n|\r|\n/);
  const header = cells(rows[0]).map((name) => name.toLowerCase());
  const columns = ["candidate", "score", "sensitivity"].map((name) => header.indexOf(name));
  const missing = ["candidate", "score", "sensitivity"].filter((_, i) => columns[i] < 0);
  if (missing.length) throw new Error(`the first line must name the columns; add ${missing.join(", ")}`);
  const candidates = [];
  rows.forEach((line, place) => {
    if (place === 0 || !line.trim()) return;
    const [name, score, sensitivity] = columns.map((column) => cells(line)[column] ?? "");
    for (const [what, value] of [["score", score], ["sensitivity", sensitivity]]) {
      if (value === "" || !Number.isFinite(Number(value))) throw new Error(`line ${place + 1} has no number in column ${what}`);
    }
    if (Number(sensitivity) < 0) throw new Error(`line ${place + 1} has a negative sensitivity`);
    candidates.push([name || String(candidates.length + 1), Number(score), Number(sensitivity)]);
  });
  if (candidates.length < 2) throw new Error("it needs at least two candidates");
  if (candidates.length > MOST_CANDIDATES) throw new Error(`it has more than ${MOST_CANDIDATES} candidates`);
  return candidates;
}

async function upload() {
  const file = $("upload").files[0];
  if (!file) return;
  try {
    if (file.size > LARGEST_FILE) throw new Error(`it is larger than ${LARGEST_FILE / 1024} KiB`);
    const rows = readTable(await file.text());
    setCandidates(rows.map(([name]) => name), rows.map((row) => row[1]), rows.map((row) => row[2]));
    ownCandidates();
  } catch (error) {
    complain(`The file was not used: ${error.message}.`);
  }
  $("upload").value = "";
}

// --- Wiring -------------------------------------------------------------------------------------------

function wire() {
  for (const [name, { toValue }] of Object.entries(SLIDERS)) {
    $(name).addEventListener("input", () => {
      state[name] = Number(toValue(Number($(name).value)).toPrecision(3));
      $(`${name}-value`).textContent = (SLIDERS[name].say ?? short)(state[name]);
      changed();
    });
  }
  $("scenario").addEventListener("change", () => {
    chooseScenario($("scenario").value);
    showSettings();
    showRows();
    changed();
  });
  $("upload").addEventListener("change", upload);
  $("add").addEventListener("click", () => {
    state.names.push(String(state.names.length + 1));
    state.scores.push(0);
    state.sensitivities.push(1);
    state.neighbour.push(0);
    ownCandidates();
  });
  $("same").addEventListener("click", () => moveNeighbour(() => 0));
  $("worst").addEventListener("click", () => {
    const best = state.scores.indexOf(Math.max(...state.scores));
    moveNeighbour((a) => (a === best ? -state.sensitivities[a] : state.sensitivities[a]));
  });
  $("link").addEventListener("click", async () => {
    await navigator.clipboard.writeText(location.href).catch(() => {});
    $("link-note").textContent = state.scenario
      ? "Copied the address of this page."
      : "Copied. The link contains your candidates with their scores: share it only with people who may see them.";
  });
  $("mechanism").addEventListener("change", showSnippet);
  $("copy").addEventListener("click", () => navigator.clipboard.writeText($("snippet").textContent).catch(() => {}));
  $("save-code").addEventListener("click", () => save("pick.py", $("snippet").textContent, "text/x-python"));
  for (const chart of document.querySelectorAll(".chart")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "save";
    button.textContent = "SVG";
    button.title = "Download this figure";
    button.addEventListener("click", () => {
      const name = `${chart.id.replace("-chart", "")}.svg`;
      save(name, asFile(chart.querySelector("svg")), "image/svg+xml");
    });
    chart.parentElement.querySelector("h2").append(button);
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

function moveNeighbour(move) {
  state.neighbour = state.scores.map((score, a) => score + move(a));
  showRows();
  changed();
}

async function start() {
  scenarios = await (await fetch("/scenarios.json")).json();
  $("scenario").append(...scenarios.map(({ id, title }) => new Option(title, id)), new Option("your own candidates", ""));
  $("scenario").lastElementChild.disabled = true;
  wire();
  readAddress();
  showSettings();
  showRows();
  await refresh();
}

start();
