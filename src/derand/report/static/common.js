"use strict";
// What the page's scripts share: the data, columns of many rows unpacked, numbers cut as the library cuts them.
const derand = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const one = (selector, from = document) => from.querySelector(selector);
  const kinds = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f8: Float64Array };

  function decode(text, kind) {
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let k = 0; k < raw.length; k += 1) bytes[k] = raw.charCodeAt(k);
    return new kinds[kind](bytes.buffer);
  }

  function unpack(column) { // an array of numbers; a missing one is NaN
    const found = decode(column.bytes, column.type);
    if (!column.values) return found;
    const values = decode(column.values, "f8");
    return Float64Array.from(found, (place) => values[place]);
  }

  const trim = (text) => (text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text);

  function cut(value) { // four digits, never above the value: what `format_short_down` of the library writes
    if (value === Infinity) return "no limit";
    if (value === 0) return "0";
    if (value >= 1000 && value < 1e7) return String(Math.floor(value));
    const [mantissa, exponent] = value.toExponential(60).split("e");
    const digits = mantissa.replace(".", "").slice(0, 4);
    const power = Number(exponent);
    if (value < 1e-4 || value >= 1e7) return `${trim(`${digits[0]}.${digits.slice(1)}`)}e${power}`;
    return trim(power < 0 ? `0.${"0".repeat(-1 - power)}${digits}` : `${digits.slice(0, power + 1)}.${digits.slice(power + 1)}`);
  }

  const shorten = (text, length) => (text.length <= length ? text : `${text.slice(0, length - 1).trimEnd()}…`);
  const count = (number) => number.toLocaleString("en-US");

  function make(tag, kind, text) {
    const element = document.createElement(tag);
    if (kind) element.className = kind;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  const { listed, classes } = data;
  const columns = {
    row: unpack(listed.row),
    label: unpack(listed.label),
    truth: listed.truth && unpack(listed.truth),
    runner_up: listed.runner_up && unpack(listed.runner_up),
    radius: listed.radius.map(unpack),
  };
  const details = new Map(listed.detailed.map((at, k) => [at, data.details[k]]));

  function rowAt(at) { // all that the page knows of a row of its table
    return {
      row: columns.row[at],
      name: listed.name?.[at] ?? String(columns.row[at]),
      label: classes[columns.label[at]],
      truth: columns.truth && classes[columns.truth[at]],
      correct: columns.truth && columns.truth[at] === columns.label[at],
      runner_up: columns.runner_up && classes[columns.runner_up[at]],
      is_one: columns.label[at] === 1,
      radius: columns.radius.map((column) => column[at]),
      get radius_text() { return columns.radius.map((column) => listed.verdict?.[at] ?? cut(column[at])); },
      detail: details.get(at) ?? null,
    };
  }

  return { data, all, one, make, unpack, cut, shorten, count, columns, details, rowAt, size: columns.row.length, picked: 0 };
})();
