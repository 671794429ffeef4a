// What the page is about: candidates, sliders and mechanisms, kept in the address.

import { number, percent } from "/words.js";

// Round numbers from 0.001 to 100, ten for each decade. The server knows those of ε (EPSILONS in views.py).
const ROUND = [-3, -2, -1, 0, 1].flatMap((power) => [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8].map((digits) => Number(`${digits}e${power}`))).concat(100);

function placeOf(value) {
  if (!(value >= ROUND[0] && value <= 100)) return NaN;
  const far = (at) => Math.abs(Math.log(value / ROUND[at]));
  return [...ROUND.keys()].reduce((best, at) => (far(at) < far(best) ? at : best));
}

const LOGARITHMIC = { toValue: (at) => ROUND[at], toPlace: placeOf, say: number };
const LINEAR = { toValue: (at) => at, toPlace: (value) => value, say: number };
export const SLIDERS = { epsilon: LOGARITHMIC, tilt: LINEAR, drop: { ...LINEAR, say: kept }, beta: LOGARITHMIC, gamma: LOGARITHMIC };
export const DEFAULTS = { epsilon: 1, tilt: 1, drop: 0.75, beta: 0.05, gamma: 0.05 };
// Whose data is in a row? The mechanism to use, and one to compare it with.
export const WHOSE = {
  one: { mechanism: "top-share", other: "heterogeneous-rnm" },
  many: { mechanism: "heterogeneous-rnm", other: "gem" },
};
export const CHOICES = ["mechanism", "other"];
const OPENING_EPSILON = 4; // of the first example

// Which sensitivities may compete, in words.
function kept(drop) {
  if (!drop) return "all candidates";
  return `the ${drop > 0 ? "least" : "most"} sensitive ${percent(1 - Math.abs(drop))}`;
}

export const $ = (id) => document.getElementById(id);
export const state = { scenario: "", ...DEFAULTS, ...WHOSE.many, names: [], scores: [], sensitivities: [], neighbour: [] };
export const known = { scenarios: [], mechanisms: {} }; // as the server sends them

export function make(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// The state is in the part after '#', which browsers do not send: no server and no log sees it.
export function writeAddress() {
  const fields = new URLSearchParams();
  if (state.scenario) fields.set("scenario", state.scenario);
  else fields.set("candidates", JSON.stringify(state.names.map((name, a) => [name, state.scores[a], state.sensitivities[a]])));
  for (const name of [...Object.keys(SLIDERS), ...CHOICES]) fields.set(name, state[name]);
  if (hasNeighbour()) fields.set("neighbour", JSON.stringify(state.neighbour));
  history.replaceState(null, "", `#${fields}`);
}

export function hasNeighbour() {
  return state.neighbour.some((score, a) => score !== state.scores[a]);
}

export function readAddress() {
  const fields = new URLSearchParams(location.hash.slice(1));
  if (!fields.has("epsilon") && !fields.has("scenario") && !fields.has("candidates")) fields.set("epsilon", OPENING_EPSILON);
  for (const [name, { toPlace }] of Object.entries(SLIDERS)) {
    const value = Number(fields.get(name) ?? DEFAULTS[name]);
    const place = toPlace(value);
    const { min, max } = $(name);
    const sound = place >= Number(min) && place <= Number(max);
    state[name] = sound ? value : DEFAULTS[name];
  }
  Object.assign(state, WHOSE.many);
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
  for (const name of CHOICES) {
    const wanted = fields.get(name);
    if ([...$(name).options].some(({ value }) => value === wanted)) state[name] = wanted;
  }
}

export function chooseScenario(id) {
  const { id: found, whose, names, scores, sensitivities } = known.scenarios.find((one) => one.id === id) ?? known.scenarios[0];
  state.scenario = found;
  Object.assign(state, WHOSE[whose]);
  setCandidates(scores.map((score, a) => [names?.[a] ?? String(a + 1), score, sensitivities[a]]));
}

export function setCandidates(rows) {
  const [names, scores, sensitivities] = [0, 1, 2].map((column) => rows.map((row) => row[column]));
  Object.assign(state, { names, scores, sensitivities, neighbour: [...scores] });
}
