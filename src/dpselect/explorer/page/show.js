// How the page shows an answer.

import { MOST_ROWS, drawCurves, drawPicks, drawScores } from "/charts.js";
import { $, known, make } from "/state.js";
import { error, number, percent, several } from "/words.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => show());

let setting = null; // the state that the answer is about, which may have changed since
let answer = null;
let drawn = null; // how often each candidate was picked in the latest draws

// A mechanism's colour, lightened on dark pages.
function color(name) {
  const { color: hex } = known.mechanisms[name];
  if (!dark.matches) return hex;
  const channels = [1, 3, 5].map((at) => Math.round(Number.parseInt(hex.slice(at, at + 2), 16) * 0.55 + 255 * 0.45));
  return `#${channels.map((channel) => channel.toString(16).padStart(2, "0")).join("")}`;
}

export function label(name) {
  return name === "uniform" ? "a random pick" : known.mechanisms[name].label;
}

function legend(place, entries) {
  place.replaceChildren(...entries.map(({ name, color: ink, mark }) => {
    const sample = make("b", { textContent: mark, ariaHidden: "true" });
    sample.style.color = ink;
    return make("span", {}, sample, ` ${name}`);
  }));
}

export function show(result = answer, asked = setting) {
  if (!result) return;
  if (JSON.stringify(asked) !== JSON.stringify(setting)) forget();
  [answer, setting] = [{ ...answer, ...result }, asked];
  const chosen = [...new Set([setting.mechanism, setting.other])];
  const needed = chosen.flatMap((name) => known.mechanisms[name].parameters);
  for (const name of ["tilt", "keep", "beta", "gamma"]) $(`${name}-field`).hidden = !needed.includes(name);
  showAnswer(chosen);
  showPicks();
  showCurves("chances");
  showMechanisms(chosen);
  if ($("fold-errors").open) showCurves("errors");
  if (isShown("correlation")) showScores();
  if (isShown("losses")) showLosses();
  $("snippet").textContent = answer.snippets[setting.mechanism];
}

function isShown(part) {
  return $(`fold-${part}`).open && answer[part];
}

function best() {
  const top = Math.max(...setting.scores);
  return setting.names.filter((_, a) => setting.scores[a] === top);
}

function showAnswer(chosen) {
  const many = best().length;
  const finds = many > 1 ? `one of the ${many} best candidates` : "the best candidate";
  const figure = (name) => make("b", { textContent: percent(answer.chances[name]), className: "figure" });
  const [first, ...others] = [...new Set([...chosen, "uniform"])];
  $("answer").replaceChildren(
    `With these candidates and ε\u00a0=\u00a0${number(setting.epsilon)}, `, make("b", { textContent: `${label(first)} ` }), `finds ${finds} `, figure(first), " of the time",
    ...others.flatMap((name) => ["; ", make("b", { textContent: `${label(name)} ` }), figure(name)]), ".",
  );
  const safe = Object.keys(answer.chances).filter((other) => known.mechanisms[other].private);
  const top = safe.reduce((one, other) => (answer.chances[other] > answer.chances[one] ? other : one), chosen[0]);
  $("context").textContent = chosen.includes(top) ? "No private mechanism finds it more often." : `The most successful private mechanism here is ${label(top)}: ${percent(answer.chances[top])}${bet(top)}.`;
}

// Why a mechanism does better than those compared: most favour some sensitivities, whatever the scores.
function bet(name) {
  if (name === "krr") return ", because it bets all on the best; if it misses, every other candidate is as likely, also the worst";
  const { parameters } = known.mechanisms[name];
  const favour = { gem: 1, mgem: -1 }[name] ?? (parameters.includes("tilt") ? setting.tilt : parameters.includes("keep") ? setting.drop : parameters.includes("gamma") ? -1 : 0);
  if (!favour) return "";
  return `, because it bets that good candidates have ${favour > 0 ? "small" : "large"} sensitivities, and here that is so; where it is not, it loses`;
}

// The best candidates by score, and the rest together.
function showPicks() {
  const [first, second] = [setting.mechanism, setting.other].map((name) => answer.probabilities[name]);
  const order = setting.scores.map((_, a) => a).sort((a, b) => setting.scores[b] - setting.scores[a] || a - b);
  const cut = order.length > MOST_ROWS ? MOST_ROWS - 1 : order.length;
  const sum = (values, places) => Math.min(1, places.reduce((total, a) => total + values[a], 0));
  const row = (name, places, place) => {
    const counts = { first: sum(first, places), second: sum(second, places), drawn: drawn ? sum(drawn.map((count) => count / drawn.total), places) : undefined };
    const title = [name, `${label(setting.mechanism)}: ${percent(counts.first)}`, `${label(setting.other)}: ${percent(counts.second)}`];
    return { name, place, ...counts, title: title.join("\n") };
  };
  const rows = order.slice(0, cut).map((a, place) => row(setting.names[a], [a], place));
  const others = order.slice(cut);
  if (others.length) rows.push(row(`${others.length} others`, others, cut));
  legend($("picks-legend"), [
    { name: label(setting.mechanism), color: color(setting.mechanism), mark: "▬" },
    { name: label(setting.other), color: color(setting.other), mark: "▬" },
    ...(drawn ? [{ name: "drawn", color: "inherit", mark: "○" }] : []),
  ]);
  const summary = rows.slice(0, 3).map(({ name, first: chance }) => `${name} ${percent(chance)}`).join(", ");
  drawPicks($("picks-chart"), {
    rows, first: color(setting.mechanism), second: color(setting.other),
    label: `Chance of each candidate under ${label(setting.mechanism)}, best score first: ${summary}`,
  });
  $("picks-note").textContent = others.length ? `Best score first; the last row holds the ${others.length} others together.` : "Best score first.";
}

function showCurves(field) {
  const series = Object.entries(answer.curves).map(([name, curve], i) => ({
    name: label(name), x: curve.places, y: curve[field], color: color(name),
    dashes: name === "uniform" ? "2 4" : i ? "8 4" : null, mark: name === "uniform" ? "┈┈" : i ? "╌╌" : "━━",
  }));
  const log = field === "errors";
  const title = log ? "mean squared error" : "chance of the best";
  const say = log ? number : percent;
  legend($(`${field}-legend`), series);
  drawCurves($(`${field}-chart`), {
    series, up: { title, log, say: (value) => say(value) }, here: setting.epsilon,
    label: `${title} against ε: ${series.map(({ name, y }) => `${name} from ${say(y[0])} to ${say(y.at(-1))}`).join(", ")}`,
  });
}

// A table of mechanisms, with a bar for each number from 0 to 1.
function showMeters(place, rows) {
  place.replaceChildren(...rows.map(({ name, share, cells, chosen }) => {
    const bar = make("div", { className: "bar" });
    bar.style.width = `${100 * Math.min(1, share)}%`;
    bar.style.background = color(name);
    const title = make("th", { scope: "row", textContent: label(name) });
    if (!known.mechanisms[name].private) title.className = "warn";
    return make("tr", { className: chosen ? "chosen" : "" }, title, make("td", {}, cells[0] ?? "", bar), make("td", { textContent: cells[1] }));
  }));
}

function showMechanisms(chosen) {
  const worst = (Math.max(...setting.scores) - Math.min(...setting.scores)) ** 2;
  const names = Object.keys(answer.chances).sort((a, b) => answer.chances[b] - answer.chances[a]);
  showMeters($("mechanisms"), names.map((name) => ({
    name, share: answer.chances[name], chosen: chosen.includes(name),
    cells: [percent(answer.chances[name]), error(answer.errors[name], worst)],
  })));
}

function showLosses() {
  showMeters($("losses"), Object.entries(answer.losses).map(([name, loss]) => {
    const words = loss === null || loss >= 0.001 ? number(loss) : loss ? "less than 0.001" : "0";
    if (known.mechanisms[name].private) return { name, share: loss === null ? 1 : loss / setting.epsilon, cells: ["", words] };
    return { name, share: 1, cells: ["can exceed ε", loss === null ? words : `${words} or more`] }; // other neighbours lose more
  }));
}

function showScores() {
  const value = answer.correlation === null ? "undefined" : answer.correlation.toFixed(2).replace("-", "−");
  $("correlation").textContent = `If they do, GEM does well. If good candidates have large sensitivities, modified GEM or random stopping does. Spearman’s correlation of score and sensitivity, from −1 to 1: ${value}.`;
  drawScores($("scores-chart"), setting);
}

// --- Draws ----------------------------------------------------------------------------------------------

function forget() {
  drawn = null;
  $("drawn").textContent = "Draws are simulated on this page from the exact chances.";
}

export function draw(times) {
  const chances = answer.probabilities[setting.mechanism];
  drawn = chances.map(() => 0);
  drawn.total = times;
  let last = 0;
  for (let i = 0; i < times; i++) {
    let left = Math.random();
    last = chances.findIndex((chance) => (left -= chance) < 0);
    if (last < 0) last = chances.indexOf(Math.max(...chances)); // the chances' sum was rounded
    drawn[last] += 1;
  }
  const top = Math.max(...setting.scores);
  const hits = drawn.reduce((sum, count, a) => sum + (setting.scores[a] === top ? count : 0), 0);
  const one = best().length > 1 ? "one of the best" : "the best";
  const name = label(setting.mechanism).replace(/^./, (letter) => letter.toUpperCase());
  $("drawn").textContent = times === 1
    ? `${name} picked “${setting.names[last]}”, ${hits ? `${one}.` : `with score ${number(setting.scores[last])}. The best has ${number(top)}.`}`
    : `${name} picked ${one} ${several(hits, "time")} in ${times.toLocaleString("en")}.`;
  showPicks();
}
