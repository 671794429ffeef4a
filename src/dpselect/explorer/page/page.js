// The page: its controls and its requests to the server.

import { Grid, LARGEST_FILE, MOST_CANDIDATES, checkRows, readTable } from "/candidates.js";
import { asFile } from "/charts.js";
import { draw, label, show } from "/show.js";
import { $, CHOICES, SLIDERS, WHOSE, chooseScenario, hasNeighbour, known, make, readAddress, setCandidates, state, writeAddress } from "/state.js";
import { several } from "/words.js";

const FOLDED = ["correlation", "losses"]; // what the server leaves out unless it is unfolded

// --- Requests -------------------------------------------------------------------------------------------

let asking = false; // one request at a time
let next = null; // the newest request waits while one runs
let isWhole = true; // whether the page shows all parts of its setting
let rest = 0;
let changedAt = 0;

// While a slider moves, the answer leaves out curves and folds. They, the address, and what a screen reader says follow
// when the hand rests.
function changed({ isQuick = false } = {}) {
  changedAt ||= performance.now();
  $("answer").setAttribute("aria-busy", "true");
  clearTimeout(rest);
  rest = setTimeout(() => {
    rest = 0;
    $("answer").removeAttribute("aria-busy");
    writeAddress();
    if (isWhole && !asking) settle();
    else refresh();
  }, 300);
  refresh({ isQuick });
}

async function refresh({ isQuick = false } = {}) {
  delete document.body.dataset.settled;
  next = { isQuick: isQuick && (next?.isQuick ?? true) };
  if (asking) return;
  asking = true;
  while (next) {
    isWhole = !next.isQuick;
    next = null;
    await ask(["curves", ...FOLDED.filter((part) => $(`fold-${part}`).open)].filter(() => isWhole));
  }
  asking = false;
  if (changedAt) performance.measure("drawn", { start: changedAt });
  changedAt = 0;
  settle();
}

function settle() {
  if (!rest && isWhole) document.body.dataset.settled = "";
}

async function ask(parts) {
  const asked = structuredClone(state);
  const { scenario, mechanism, other, ...setting } = asked;
  const body = JSON.stringify({ ...setting, chosen: [mechanism, other], parts });
  const slow = setTimeout(() => complain("Still computing. The first long look compiles code, once: up to a minute."), 2000);
  let result;
  try {
    const response = await fetch("/view", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    result = await response.json();
    complain(result.error ? `Not drawn: ${result.error}.` : "");
  } catch {
    complain("The explorer does not answer. Is `dpselect explore` still running?");
  }
  clearTimeout(slow);
  if (result && !result.error) show(result, asked);
  await new Promise(requestAnimationFrame);
}

function complain(text) {
  $("problem").textContent = text;
  $("problem").hidden = !text;
}

// --- Settings and candidates ----------------------------------------------------------------------------

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
  $("about").textContent = known.scenarios.find((one) => one.id === state.scenario)?.about ?? "";
  for (const name of CHOICES) $(name).value = state[name];
  $("whose").value = state.mechanism === "top-share" ? "one" : "many";
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

// --- Files --------------------------------------------------------------------------------------------

function save(name, text, kind) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: kind })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

// Show one user's rows.
function use(what, table) {
  const { rows, isOnePersons } = checkRows(table);
  setCandidates(rows);
  if (isOnePersons) Object.assign(state, WHOSE.one);
  const note = isOnePersons ? " It has no sensitivities, so the row is taken as one person’s: each is the range of the scores." : "";
  $("reading").textContent = `Read ${several(state.names.length, "candidate")} from ${what}.${note}`;
  ownCandidates();
  showRows();
}

// Use the one user of a table, or ask which one.
function chooseUser(what, users) {
  const names = [...users.keys()];
  if (names.length < 2) return use(what, users.get(names[0]) ?? []);
  $("user").replaceChildren(new Option("choose", ""), ...names.map((name) => new Option(name, name)));
  $("user").firstElementChild.disabled = true;
  $("user").onchange = () => attempt(what, () => use(what, users.get($("user").value)));
  $("user-field").hidden = false;
  $("reading").textContent = `Read ${several(names.length, "user")} from ${what}. The page shows one at a time: choose one.`;
}

async function attempt(what, action) {
  $("reading").className = "soft";
  try {
    await action();
  } catch (problem) {
    $("reading").className = "problem";
    $("reading").textContent = `Could not use ${what}: ${problem.message}.`;
  }
}

async function read(what, size, text) {
  $("user-field").hidden = true;
  $("reading").textContent = `Reading ${what}…`;
  await attempt(what, async () => {
    if (size > LARGEST_FILE) throw new Error(`it is larger than ${LARGEST_FILE / 1024} KB`);
    chooseUser(what, readTable(await text()));
  });
}

// --- Wiring -------------------------------------------------------------------------------------------

function on(id, event, action) {
  $(id).addEventListener(event, action);
}

function wire() {
  for (const [name, { toValue }] of Object.entries(SLIDERS)) {
    on(name, "input", () => {
      state[name] = toValue(Number($(name).value));
      showSlider(name);
      changed({ isQuick: true });
    });
  }
  for (const name of CHOICES) {
    on(name, "change", () => {
      state[name] = $(name).value;
      showSettings();
      changed();
    });
  }
  on("whose", "change", () => {
    Object.assign(state, WHOSE[$("whose").value]);
    showSettings();
    changed();
  });
  on("scenario", "change", () => {
    chooseScenario($("scenario").value);
    $("reading").textContent = "";
    $("user-field").hidden = true;
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
    let place = state.names.length + 1;
    while (state.names.includes(`candidate ${place}`)) place += 1;
    const fresh = { names: `candidate ${place}`, scores: 0, sensitivities: 1, neighbour: 0 };
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
    resized = requestAnimationFrame(() => show());
  });
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
  [known.scenarios, known.mechanisms] = await Promise.all(["/scenarios.json", "/mechanisms.json"].map(async (name) => (await fetch(name)).json()));
  $("scenario").append(...known.scenarios.map(({ id, title }) => new Option(title, id)), new Option("your own candidates", ""));
  $("scenario").lastElementChild.disabled = true;
  for (const name of CHOICES) $(name).append(...Object.keys(known.mechanisms).map((one) => new Option(label(one), one)));
  wire();
  readAddress();
  showSettings();
  showRows();
  await refresh();
}

start();
