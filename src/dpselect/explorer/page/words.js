// Numbers as people say them.

const SPACE = "\u00a0"; // keeps a number and its unit on one line
const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

export function percent(chance) {
  if (chance === 0) return `0${SPACE}%`;
  if (chance < 0.001) return `less than 0.1${SPACE}%`;
  if (chance > 0.999 && chance < 1) return `more than 99.9${SPACE}%`;
  return `${Number((100 * chance).toFixed(chance < 0.0995 || chance > 0.99 ? 1 : 0))}${SPACE}%`;
}

export function number(value) {
  if (value === null) return "∞";
  const size = Math.abs(value);
  if (value === 0 || (size >= 0.001 && size < 1e7)) {
    return value.toLocaleString("en", { maximumSignificantDigits: 3 }).replace("-", "−");
  }
  const [digits, power] = value.toExponential(1).replace("e+", "e").split("e");
  const raised = `10${[...power].map((character) => SUPERSCRIPTS[character]).join("")}`;
  return Number(digits) === 1 ? raised : `${Number(digits)}${SPACE}×${SPACE}${raised}`.replace("-", "−");
}

// A mean squared error, next to the largest there could be.
export function error(value, largest) {
  return value > 0 && value < 1e-6 * largest ? "almost 0" : number(value);
}

export function several(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
