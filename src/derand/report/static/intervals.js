"use strict";
// The row table of a report on intervals: sorting, filtering, and the way to "What if". It computes no answers.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const one = (selector, from = document) => from.querySelector(selector);
  const number = (value) => (value === "inf" ? Infinity : value === "-inf" ? -Infinity : value);

  all(".needs-script").forEach((element) => { element.hidden = false; });
  const body = one("#row-table tbody");
  const lines = all("tr", body);
  const state = { sort: "row", falling: false };
  const haystacks = lines.map((line, at) => `${data.rows[at].row} ${data.rows[at].name ?? ""} ${line.textContent}`.toLowerCase());
  const widths = data.rows.map((row) => number(row.width)).sort((a, b) => a - b);
  const wide = widths[Math.ceil(0.9 * widths.length) - 1];

  const wanted = {
    "": () => true,
    wide: (row) => number(row.width) >= wide,
    inside: (row) => row.inside === true,
    outside: (row) => row.inside === false,
    small: (row) => number(row.tolerance) < number(data.report_radius),
    large: (row) => number(row.tolerance) >= number(data.report_radius),
  };

  function filter() {
    const fits = wanted[one("#show").value];
    const words = one("#find").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    data.rows.forEach((row, at) => {
      const visible = fits(row) && words.every((word) => haystacks[at].includes(word));
      lines[at].hidden = !visible;
      shown += visible;
    });
    one("#shown").textContent = `${shown} of ${data.rows.length} rows shown`;
  }

  function sort() {
    const turn = state.falling ? -1 : 1;
    const key = (at) => number(data.rows[at][state.sort]);
    const order = data.rows.map((_, at) => at).sort((a, b) => (key(a) === key(b) ? a - b : (key(a) < key(b) ? -1 : 1) * turn));
    body.append(...order.map((at) => lines[at]));
    all("#row-table th[data-sort]").forEach((head) => {
      if (head.dataset.sort === state.sort) head.setAttribute("aria-sort", state.falling ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }

  all("#row-table th[data-sort]").forEach((head) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      state.falling = state.sort === head.dataset.sort ? !state.falling : false;
      state.sort = head.dataset.sort;
      sort();
    });
  });
  one("#show").addEventListener("change", filter);
  one("#find").addEventListener("input", filter);
  filter();
  addEventListener("beforeprint", () => { all("details").forEach((element) => { element.open = true; }); });
})();
