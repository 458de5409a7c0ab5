// Numbers as people read them: the same forms as the text report's.

function figure(value) {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toFixed(digits);
}

function seconds(value) {
  if (value === 0) return "0 s";
  const size = Math.abs(value);
  if (size < 1e-6) return `${figure(value * 1e9)} ns`;
  if (size < 1e-3) return `${figure(value * 1e6)} us`;
  if (size < 1) return `${figure(value * 1e3)} ms`;
  return `${figure(value)} s`;
}

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  let left = value;
  while (Math.abs(left) >= 1024 && unit < units.length - 1) {
    left /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${Math.round(left)} B` : `${figure(left)} ${units[unit]}`;
}

function count(value) {
  return Math.round(value).toLocaleString("en-US");
}

// A value in its unit, as tables and tips show it.
function worded(value, unit) {
  if (value === null || value === undefined) return "-";
  if (unit === "s") return seconds(value);
  if (unit === "B") return bytes(value);
  if (unit === "B/s") return `${bytes(value)}/s`;
  if (unit === "share") return `${figure(100 * value)} %`;
  if (unit === "ratio") return String(Number(value.toPrecision(3)));
  if (unit === "calls") return `${figure(value)} calls`;
  return unit === "n" ? count(value) : String(value);
}

// The unit in which times up to `longest` seconds are read best.
function timeUnit(longest) {
  const units = [["s", 1], ["ms", 1e-3], ["us", 1e-6], ["ns", 1e-9]];
  return units.find(([, factor]) => longest >= 2 * factor) ?? units[3];
}

function sizeUnit(largest) {
  const units = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];
  return units.find(([, factor]) => largest >= 2 * factor) ?? ["B", 1];
}

// A number on an axis.
function tick(value) {
  return String(Number(value.toPrecision(6)));
}

// A text without its middle, where it is longer. Example: ("abcdefghijkl", 9) -> "ab...ijkl".
function shortened(text, most) {
  if (text.length <= most) return text;
  const first = Math.floor((most - 3) / 3);
  return `${text.slice(0, first)}...${text.slice(text.length - (most - 3 - first))}`;
}
