"use strict";
// The table of rows of any report, and the card beside it: sorted, filtered and drawn a page at a time, so that many
// rows cost no more than a few. A page says what its rows are:
//   sort: the column that they are sorted by     keyOf(name): what a column is sorted by, an array
//   cellsOf(at): the cells beside the name       factsOf(at): pairs of the card
//   wordsOf(at): what a search looks at          fits(name): whether a row belongs to a choice of the menu
//   onPick(at): what else is shown of a row
derand.makeTable = ({ sort: first, keyOf, cellsOf, factsOf, wordsOf, fits, onPick }) => {
  const { data, all, one, make, list, shorten, count, columns, nameOf, size } = derand;
  const PAGE = 200;
  const body = one("#row-table tbody");
  const state = { sort: first, falling: false, page: 0 };
  let order = Uint32Array.from({ length: size }, (_, at) => at);
  let shown = order;
  let haystacks = null;

  function addRow(at) {
    const line = make("tr");
    line.dataset.at = at;
    if (at === derand.picked) line.setAttribute("aria-current", "true");
    const head = make("th");
    head.scope = "row";
    const name = make("span", "row-name");
    if (columns.name?.[at]) name.title = `${nameOf(at)}, row ${columns.row[at]}`;
    const button = make("button", "", shorten(nameOf(at), 30));
    button.type = "button";
    button.tabIndex = -1;
    button.setAttribute("aria-label", `Show row ${shorten(nameOf(at), 30)}`);
    name.append(button);
    head.append(name);
    line.append(head, ...cellsOf(at));
    return line;
  }

  function draw() {
    const pages = Math.max(1, Math.ceil(shown.length / PAGE));
    state.page = Math.min(state.page, pages - 1);
    const start = state.page * PAGE;
    const places = [...shown.subarray(start, start + PAGE)];
    body.replaceChildren(...places.map(addRow));
    const stop = one("tr[aria-current] button", body) ?? one("button", body); // one stop of the tab key: arrows move on
    if (stop) stop.tabIndex = 0;
    one("#shown").textContent = `${count(shown.length)} of ${count(size)} rows`;
    one(".pager").hidden = pages === 1;
    one("#page-text").textContent = `Rows ${count(start + 1)} to ${count(start + places.length)} of ${count(shown.length)}`;
    one("#page-back").disabled = state.page === 0;
    one("#page-on").disabled = state.page === pages - 1;
  }

  function turn(by) {
    state.page += by;
    draw();
    one(".scroll.tall").scrollTop = 0;
  }

  const flatten = (text) => text.toLowerCase().replace(/(\d),(?=\d{3})/g, "$1"); // 1,258 is 1258
  const split = (text, at = /[\s=]+/) => flatten(text).split(at).filter(Boolean);

  function prepareWords() { // the first search pays for them
    haystacks = Array.from({ length: size }, (_, at) => {
      const known = [columns.row[at], columns.name?.[at] ?? "", ...wordsOf(at), ...(derand.tellCells?.(at) ?? [])];
      return flatten(known.join(" "));
    });
  }


  // Words of a search: a column's name and what follows is about that column alone ("age 23"), all others about any.
  function readSearch() {
    const text = one("#find").value;
    const found = { words: split(text, /\s+/), asked: [] };
    const words = split(text);
    const names = (derand.cellNames ?? []).map((name, k) => ({ k, parts: split(name) })).filter(({ parts }) => parts.length);
    names.sort((a, b) => b.parts.length - a.parts.length);
    const isAt = (start) => names.find(({ parts }) => parts.every((part, i) => words[start + i] === part));
    const free = [];
    for (let at = 0; at < words.length;) {
      const name = isAt(at);
      let end = at + (name?.parts.length ?? 1);
      if (!name || end === words.length || isAt(end)) { free.push(...words.slice(at, end)); at = end; continue; }
      const start = end;
      while (end < words.length && !isAt(end)) end += 1;
      found.asked.push({ k: name.k, values: words.slice(start, end) });
      at = end;
    }
    return found.asked.length ? { ...found, words: free } : found;
  }

  function holds(at, { words, asked }) {
    const hasAll = (some) => some.every((word) => haystacks[at].includes(word));
    return hasAll(words) && asked.every(({ k, values }) => {
      const cell = split(derand.tellCell(at, k) ?? "");
      return cell.length && cell.every((part, i) => part === values[i]) && hasAll(values.slice(cell.length));
    });
  }

  function filter() {
    const wanted = one("#show").value;
    const search = readSearch();
    const isSearch = search.words.length + search.asked.length > 0;
    if (isSearch && !haystacks) prepareWords();
    const isWanted = wanted ? fits(wanted) : () => true;
    shown = wanted || isSearch ? order.filter((at) => isWanted(at) && holds(at, search)) : order;
    state.page = 0;
    draw();
  }

  function sort() {
    const key = keyOf(state.sort);
    const sign = state.falling ? -1 : 1;
    const isGap = (value) => Number.isNaN(value); // what is not known stands at the end, either way
    order = Uint32Array.from({ length: size }, (_, at) => at).sort((a, b) => {
      if (key[a] < key[b]) return -sign;
      if (key[a] > key[b]) return sign;
      return isGap(key[a]) - isGap(key[b]) || a - b;
    });
    all("#row-table th[data-sort]").forEach((head) => {
      if (head.dataset.sort === state.sort) head.setAttribute("aria-sort", state.falling ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    filter();
  }

  function show(at) {
    derand.picked = at;
    one("#detail-title").textContent = `Row ${columns.name?.[at] ?? count(columns.row[at])}`;
    all("#detail .movable").forEach((link) => { link.hidden = at >= data.n_movable; });
    one("#detail-facts").replaceChildren(list(factsOf(at)));
    onPick(at);
  }

  all("#row-table th[data-sort]").forEach((head) => {
    const button = make("button", "", head.textContent);
    button.type = "button";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      state.falling = state.sort === head.dataset.sort ? !state.falling : false;
      state.sort = head.dataset.sort;
      sort();
    });
  });
  body.addEventListener("click", (event) => {
    const line = event.target.closest("tr");
    if (!line) return;
    all("tr[aria-current]", body).forEach((other) => other.removeAttribute("aria-current"));
    line.setAttribute("aria-current", "true");
    show(Number(line.dataset.at));
    if (matchMedia("(max-width: 52rem)").matches) one("#detail").scrollIntoView({ block: "nearest" });
  });
  body.addEventListener("keydown", (event) => {
    const buttons = all("button", body);
    const at = buttons.indexOf(event.target);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (at < 0 || next === undefined) return;
    event.preventDefault();
    const to = buttons[Math.min(Math.max(next, 0), buttons.length - 1)];
    event.target.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  });
  one("#page-back").addEventListener("click", () => turn(-1));
  one("#page-on").addEventListener("click", () => turn(1));
  one("#show").addEventListener("change", filter);
  one("#find").addEventListener("input", filter);
  show(0);

  return {
    refresh() { // what is said of rows has changed, the rows may be the same
      const { page } = state;
      filter();
      if (one("#show").value || !page) return;
      state.page = page; // stay where the reader is
      draw();
    },
    resort(name) { // a column has changed
      if (state.sort === name) sort();
      else filter();
    },
  };
};
