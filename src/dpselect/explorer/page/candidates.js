// Candidates: read from text, and edited in a grid with one tab stop.

export const MOST_CANDIDATES = 400;
export const LARGEST_FILE = 256 * 1024;

// --- Tables as text -----------------------------------------------------------------------------------

// The cells of a line, quoted as spreadsheets quote them.
function cells(line, separator) {
  const field = new RegExp(`("((?:[^"]|"")*)"|[^${separator}]*)(${separator}|$)`, "g");
  const found = [...line.matchAll(field)];
  const last = found.findIndex((match) => match[3] === "");
  return found.slice(0, last + 1).map((match) => (match[2] === undefined ? match[1] : match[2].replaceAll('""', '"')).trim());
}

// Where commas do not separate cells they may separate decimals.
function numeric(text, separator) {
  const value = Number(separator === "," ? text : text.replace(",", "."));
  return text === "" || !Number.isFinite(value) ? null : value;
}

// Return each user's rows of name, score and sensitivity; messages quote no cell. Without a column of users there is one.
export function readTable(text) {
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\r|\n/).map((line, i) => [i + 1, line]).filter(([, line]) => line.trim());
  if (!lines.length) throw new Error("it is empty");
  const separator = ["\t", ";", ","].find((one) => lines[0][1].includes(one)) ?? ",";
  const table = lines.map(([place, line]) => [place, cells(line, separator)]);
  const [, top] = table[0];
  let columns = top.length === 2 ? [-1, 0, 1] : [0, 1, 2];
  let user = -1;
  if (columns.slice(1).every((column) => numeric(top[column] ?? "", separator) === null)) {
    const header = top.map((name) => name.toLowerCase());
    const [score, sensitivity] = ["score", "sensitivity"].map((name) => header.indexOf(name));
    user = header.findIndex((name) => name === "user" || name === "unit");
    if (score < 0) throw new Error("name the columns candidate, score and sensitivity, or leave out the line of names");
    columns = [header.findIndex((_, i) => ![user, score, sensitivity].includes(i)), score, sensitivity];
    const named = header.findIndex((name) => name === "candidate" || name === "name");
    if (named >= 0) columns[0] = named;
    table.shift();
  }
  const users = new Map();
  for (const [place, line] of table) {
    const [score, sensitivity] = [["score", columns[1]], ["sensitivity", columns[2]]].map(([what, column]) => {
      const value = column < 0 ? NaN : numeric(line[column] ?? "", separator);
      if (value === null) throw new Error(`line ${place} has no number for the ${what}`);
      return value;
    });
    if (sensitivity < 0) throw new Error(`line ${place} has a negative sensitivity`);
    const name = line[user] ?? "";
    if (!users.has(name)) users.set(name, []);
    users.get(name).push([line[columns[0]] || String(users.get(name).length + 1), score, sensitivity]);
  }
  return users;
}

// Check one user's rows. Without sensitivities the row is one person's, and each is the whole range of the scores.
export function checkRows(rows) {
  if (rows.length < 2) throw new Error("it needs at least 2 candidates");
  if (rows.length > MOST_CANDIDATES) throw new Error(`it has ${rows.length} candidates, and the page takes at most ${MOST_CANDIDATES}`);
  if (new Set(rows.map(([name]) => name)).size < rows.length) throw new Error("it must name each candidate once");
  const isOnePersons = rows.some(([, , sensitivity]) => Number.isNaN(sensitivity));
  const scores = rows.map(([, score]) => score);
  const range = Math.max(...scores) - Math.min(...scores);
  return { isOnePersons, rows: isOnePersons ? rows.map(([name, score]) => [name, score, range]) : rows };
}

// --- The grid -----------------------------------------------------------------------------------------

const FIELDS = { names: "name", scores: "score", sensitivities: "sensitivity", neighbour: "neighbour" };

// One cell is the tab stop. Arrow keys move it; Enter, F2, a second click or typing edits it.
export class Grid {
  constructor(body, { state, onEdit, onProblem, onMove }) {
    Object.assign(this, { body, state, onEdit, onProblem, onMove, row: 0, column: 0, fields: Object.keys(FIELDS).slice(0, 3) });
    body.addEventListener("keydown", (event) => this.press(event));
    body.addEventListener("mousedown", (event) => this.click(event));
    body.addEventListener("focusin", ({ target }) => target.matches("td") && this.activate(target));
  }

  show({ withNeighbour = this.fields.length === 4 } = {}) {
    this.fields = Object.keys(FIELDS).slice(0, withNeighbour ? 4 : 3);
    this.row = Math.min(this.row, this.state.names.length - 1);
    this.column = Math.min(this.column, this.fields.length - 1);
    this.body.replaceChildren(...this.state.names.map((_, a) => {
      const row = document.createElement("tr");
      row.append(...this.fields.map((field) => {
        const cell = document.createElement("td");
        cell.setAttribute("role", "gridcell");
        cell.tabIndex = -1;
        cell.textContent = this.text(field, a);
        return cell;
      }));
      return row;
    }));
    this.cell.tabIndex = 0;
    this.onMove(this.row);
  }

  get cell() {
    return this.body.rows[this.row].cells[this.column];
  }

  text(field, a) {
    return field === "names" ? this.state.names[a] : String(Number(this.state[field][a].toPrecision(6)));
  }

  activate(cell) {
    this.cell.tabIndex = -1;
    [this.row, this.column] = [cell.parentElement.rowIndex - 1, cell.cellIndex];
    cell.tabIndex = 0;
    this.onMove(this.row);
  }

  focus(row, column) {
    const within = (value, count) => Math.max(0, Math.min(value, count - 1));
    this.body.rows[within(row, this.body.rows.length)].cells[within(column, this.fields.length)].focus();
  }

  click(event) {
    const cell = event.target.closest("td");
    if (cell && cell === document.activeElement) {
      event.preventDefault();
      this.edit();
    }
  }

  press(event) {
    if (event.target.matches("input") || event.altKey) return;
    const command = event.ctrlKey || event.metaKey;
    const [first, last] = [command ? 0 : this.row, command ? this.body.rows.length - 1 : this.row];
    const moves = {
      ArrowUp: [this.row - 1, this.column],
      ArrowDown: [this.row + 1, this.column],
      ArrowLeft: [this.row, this.column - 1],
      ArrowRight: [this.row, this.column + 1],
      PageUp: [this.row - 10, this.column],
      PageDown: [this.row + 10, this.column],
      Home: [first, 0],
      End: [last, this.fields.length - 1],
    };
    if (moves[event.key]) this.focus(...moves[event.key]);
    else if (event.key === "Enter" || event.key === "F2") this.edit();
    else if (event.key.length === 1 && event.key !== " " && !command) this.edit(event.key);
    else return;
    event.preventDefault();
  }

  edit(typed) {
    const { cell, row, column } = this;
    const field = this.fields[column];
    const input = document.createElement("input");
    input.setAttribute("aria-label", `${FIELDS[field]} of ${this.state.names[row]}`);
    if (field !== "names") input.inputMode = "decimal";
    input.value = typed ?? cell.textContent;
    cell.replaceChildren(input);
    input.focus();
    if (typed === undefined) input.select();
    let open = true;
    const close = (text) => {
      open = false;
      cell.textContent = text;
    };
    const commit = () => {
      const text = input.value.trim();
      const value = field === "names" ? text : numeric(text, ";");
      const isTaken = field === "names" && this.state.names.some((name, a) => name === value && a !== row);
      if (value === null || value === "" || isTaken || (field === "sensitivities" && value < 0)) {
        input.setAttribute("aria-invalid", "true");
        const rule = field === "names" ? "a text that no other candidate has" : `a number${field === "sensitivities" ? " ≥ 0" : ""}`;
        this.onProblem(`The ${FIELDS[field]} of ${this.state.names[row]} must be ${rule}.`);
        return false;
      }
      this.onProblem("");
      const changed = value !== this.state[field][row];
      this.state[field][row] = value;
      if (field === "scores") this.state.neighbour[row] = value;
      close(this.text(field, row));
      if (field === "scores" && this.fields.length === 4) cell.parentElement.lastElementChild.textContent = cell.textContent;
      if (changed) this.onEdit(field);
      return true;
    };
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        close(this.text(field, row));
        this.onProblem("");
        cell.focus();
      } else if (event.key === "Enter" && commit()) {
        this.focus(row + 1, column);
      } else return;
      event.preventDefault();
      event.stopPropagation();
    });
    input.addEventListener("blur", () => {
      if (open && !commit()) close(this.text(field, row));
    });
  }
}
