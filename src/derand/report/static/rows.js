"use strict";
// The table of rows: sorted, filtered and drawn a page at a time, so that many rows cost no more than a few.
derand.makeTable = (onPick) => {
  const { data, all, one, make, shorten, count, columns, rowAt, size } = derand;
  const { listed, classes } = data;
  const PAGE = 200;
  const body = one("#row-table tbody");
  const paperHeads = all("#row-table th[data-detail]"); // seen on paper alone: details have the same
  const state = { sort: "radius", falling: false, page: 0, at: 0, budget: 0 };
  let order = Uint32Array.from({ length: size }, (_, at) => at);
  let shown = order;
  let haystacks = null;

  const isHeld = (at) => columns.radius[state.budget][at] > 0 && columns.radius[state.budget][at] >= data.radii[state.at];

  function addRow(at) {
    const row = rowAt(at);
    const line = make("tr");
    line.dataset.at = at;
    if (at === derand.picked) line.setAttribute("aria-current", "true");
    const head = make("th");
    head.scope = "row";
    const name = make("span", "row-name");
    if (listed.name?.[at]) name.title = `${row.name}, row ${row.row}`;
    const button = make("button", "", shorten(row.name, 30));
    button.type = "button";
    button.tabIndex = -1;
    button.setAttribute("aria-label", `Show row ${shorten(row.name, 30)}`);
    name.append(button);
    head.append(name);
    line.append(head, make("td", "", shorten(row.label, 30)));
    if (row.runner_up !== null) line.append(make("td", "", shorten(row.runner_up, 30)));
    if (row.truth !== null) {
      const truth = make("td", "", shorten(row.truth, 30));
      if (!row.correct) truth.append(" ", make("span", "bad", "wrong"));
      line.append(truth);
    }
    line.append(make("td", "radius", row.radius_text[state.budget]));
    paperHeads.forEach((head) => line.append(make("td", "failure", row.detail?.[`${head.dataset.detail}_text`] ?? "")));
    if (data.has_radius) line.append(make("td", `status${isHeld(at) ? " held" : ""}`, isHeld(at) ? "certified" : "not proven"));
    return line;
  }

  function draw() {
    const pages = Math.max(1, Math.ceil(shown.length / PAGE));
    state.page = Math.min(state.page, pages - 1);
    const start = state.page * PAGE;
    const places = [...shown.subarray(start, start + PAGE)];
    body.replaceChildren(...places.map(addRow));
    const first = one("tr[aria-current] button", body) ?? one("button", body); // one stop of the tab key: arrows move on
    if (first) first.tabIndex = 0;
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

  function prepareWords() { // the first search pays for them
    haystacks = Array.from({ length: size }, (_, at) => {
      const known = [columns.row[at], listed.name?.[at] ?? "", classes[columns.label[at]], columns.truth ? classes[columns.truth[at]] : ""];
      const values = derand.tellCells?.(at) ?? derand.details.get(at)?.pushes?.listed.map((push) => push.value) ?? [];
      return `${known.join(" ")} ${values.join(" ")}`.toLowerCase();
    });
  }

  function filter() {
    const wanted = one("#show").value;
    const words = one("#find").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const label = wanted.startsWith("label:") ? classes.indexOf(wanted.slice("label:".length)) : -1;
    const fits = {
      "": () => true, held: isHeld, open: (at) => !isHeld(at),
      right: (at) => columns.truth[at] === columns.label[at], wrong: (at) => columns.truth[at] !== columns.label[at],
    }[wanted] ?? ((at) => columns.label[at] === label);
    if (words.length && !haystacks) prepareWords();
    shown = wanted || words.length ? order.filter((at) => fits(at) && words.every((word) => haystacks[at].includes(word))) : order;
    state.page = 0;
    draw();
  }

  function rankClasses() { // places of classes in the order of their names
    const ranks = new Array(classes.length);
    [...classes.keys()].sort((a, b) => (classes[a] < classes[b] ? -1 : 1)).forEach((place, rank) => { ranks[place] = rank; });
    return ranks;
  }

  function sortKey() {
    if (state.sort === "row") return columns.row;
    if (state.sort === "radius") return listed.verdict ? listed.verdict.map((verdict) => ["flips", "undecided", "holds"].indexOf(verdict)) : columns.radius[state.budget];
    const ranks = rankClasses();
    return columns[state.sort].map((place) => ranks[place]);
  }

  function sort() {
    const key = sortKey();
    const sign = state.falling ? -1 : 1;
    order = Uint32Array.from({ length: size }, (_, at) => at).sort((a, b) => (key[a] === key[b] ? a - b : key[a] < key[b] ? -sign : sign));
    all("#row-table th[data-sort]").forEach((head) => {
      if (head.dataset.sort === state.sort) head.setAttribute("aria-sort", state.falling ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    filter();
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
    onPick(Number(line.dataset.at));
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

  return {
    setRadius(at) {
      state.at = at;
      const { page } = state;
      filter();
      if (one("#show").value || !page) return;
      state.page = page; // the same rows: stay where the reader is
      draw();
    },
    setBudget(budget) {
      state.budget = budget;
      if (state.sort === "radius") sort();
      else filter();
    },
  };
};
