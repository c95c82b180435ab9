"use strict";
// What the scripts of every page share: the data, columns of many rows unpacked, numbers written as the library writes them.
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

  function isLarger(rest, way, isNegative, last) { // whether digits grow by what is cut off after them
    if (way !== "near") return (way === "up") !== isNegative && /[1-9]/.test(rest);
    const half = "5".padEnd(rest.length, "0");
    return rest > half || (rest === half && last % 2 === 1);
  }

  function write(value, digits, way) { // what `format_short_down`, `_up` and `format_short` of the library write
    const size = Math.abs(value);
    if (size === Infinity) return "no limit";
    if (size === 0) return "0";
    const [mantissa, exponent] = size.toExponential(100).split("e");
    const every = mantissa.replace(".", "");
    const isPlain = size >= 1e-4 && size < 1e7;
    let power = Number(exponent);
    const kept = isPlain && size >= 10 ** (digits - 1) ? power + 1 : digits;
    const start = Number(every.slice(0, kept));
    let shown = String(start + (isLarger(every.slice(kept), way, value < 0, start % 10) ? 1 : 0));
    if (shown.length > kept) { power += 1; shown = shown.slice(0, kept); }
    const sign = value < 0 ? "-" : "";
    if (!isPlain) return `${sign}${trim(`${shown[0]}.${shown.slice(1)}`)}e${power}`;
    if (power < 0) return `${sign}${trim(`0.${"0".repeat(-1 - power)}${shown}`)}`;
    return sign + trim(`${shown.slice(0, power + 1).padEnd(power + 1, "0")}.${shown.slice(power + 1)}`);
  }

  const cut = (value) => write(value, 4, "down");
  const shorten = (text, length) => (text.length <= length ? text : `${text.slice(0, length - 1).trimEnd()}…`);
  const count = (number) => number.toLocaleString("en-US");

  function make(tag, kind, text) {
    const element = document.createElement(tag);
    if (kind) element.className = kind;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function list(pairs) { // names and what they are, a dl
    const found = make("dl", "row-facts");
    pairs.forEach(([name, ...told]) => {
      const pair = make("div");
      const term = make("dd");
      term.append(...told);
      pair.append(make("dt", "", name), term);
      found.append(pair);
    });
    return found;
  }

  const isPacked = (column) => column?.bytes !== undefined;
  const read = (column) => (isPacked(column) ? unpack(column) : Array.isArray(column) && isPacked(column[0]) ? column.map(unpack) : column);
  const columns = Object.fromEntries(Object.entries(data.listed).map(([name, column]) => [name, read(column)]));
  const nameOf = (at) => columns.name?.[at] ?? String(columns.row[at]);
  const details = new Map(columns.detailed.map((at, k) => [at, data.details?.[k] ?? null]));

  all(".needs-script").forEach((element) => { element.hidden = false; });
  one(".explore").classList.add("live");
  addEventListener("beforeprint", () => { all("details").forEach((element) => { element.open = true; }); });

  return { data, all, one, make, list, unpack, write, cut, shorten, count, columns, details, nameOf, size: columns.row.length, picked: 0 };
})();

(() => { // folded parts open when they are gone to, and the list of parts folds on narrow screens
  const { one } = derand;
  const contents = one(".contents");
  const narrow = matchMedia("(max-width: 70rem)");
  const fold = () => { contents.open = !narrow.matches; };
  const open = () => {
    const part = one(`[id="${location.hash.slice(1)}"] > .part`);
    if (part) part.open = true;
  };
  narrow.addEventListener("change", fold);
  contents.addEventListener("click", (event) => {
    if (!event.target.hash) return;
    fold();
    if (event.target.hash === location.hash) open();
  });
  addEventListener("hashchange", open);
  fold();
  open();
})();

(() => { // the part that is read is marked in the list of parts
  const { all } = derand;
  const links = new Map(all("nav a").map((link) => [link.hash.slice(1), link]));
  if (!("IntersectionObserver" in window)) return;
  const watcher = new IntersectionObserver((entries) => {
    entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
      links.forEach((link) => link.removeAttribute("aria-current"));
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    });
  }, { rootMargin: "-10% 0px -80% 0px" });
  all("main > section").forEach((section) => watcher.observe(section));
})();
