"use strict";
// The page of a report on labels: the radius of its charts, what its rows are, and their laws and pushes.
(() => {
  const { data, all, one, make, cut, shorten, columns, details, nameOf } = derand;
  const { classes } = data;
  const paperHeads = all("#row-table th[data-detail]"); // seen on paper alone: details have the same
  const state = { at: 0, budget: 0 };

  derand.rowAt = (at) => ({ // all that the page knows of a row of its table
    name: nameOf(at),
    label: classes[columns.label[at]],
    truth: columns.truth && classes[columns.truth[at]],
    correct: columns.truth && columns.truth[at] === columns.label[at],
    runner_up: columns.runner_up && classes[columns.runner_up[at]],
    is_one: columns.label[at] === 1,
    radius: columns.radius.map((column) => column[at]),
    radius_text: columns.radius.map((column) => columns.verdict?.[at] ?? cut(column[at])),
    detail: details.get(at) ?? null,
  });
  const { rowAt } = derand;
  const isHeld = (at) => columns.radius[state.budget][at] > 0 && columns.radius[state.budget][at] >= data.radii[state.at];

  function showRadius() {
    const radius = data.radii[state.at];
    const shared = Math.min(state.budget, data.shares.length - 1);
    const what = columns.truth ? "right and certified" : "certified";
    const start = data.radii.length > 1 ? `radius ${data.radii_text[state.at]}: ` : data.has_radius ? "" : "within the limits: ";
    const plain = (budget) => `${start}${data.counts[budget][state.at]} of ${data.n_rows} rows (${data.shares[budget][state.at]}) ${what}`;
    all(".radius-input").forEach((input) => {
      input.value = state.at;
      input.setAttribute("aria-valuetext", plain(0));
    });
    all(".radius-text").forEach((output) => { output.textContent = plain(output.getAttribute("for") ? 0 : shared); });
    all(".radius-mark").forEach((mark) => {
      const frame = mark.ownerSVGElement.dataset;
      const share = Math.min(1, radius / Number(frame.end));
      const x = Number(frame.left) + share * (Number(frame.right) - Number(frame.left));
      mark.setAttribute("x1", x);
      mark.setAttribute("x2", x);
    });
    markPercentile();
    table.refresh();
  }

  function cellsOf(at) {
    const row = rowAt(at);
    const cells = [make("td", "", shorten(row.label, 30))];
    if (row.runner_up !== null) cells.push(make("td", "", shorten(row.runner_up, 30)));
    if (row.truth !== null) {
      const truth = make("td", "", shorten(row.truth, 30));
      if (!row.correct) truth.append(" ", make("span", "bad", "wrong"));
      cells.push(truth);
    }
    cells.push(make("td", "radius", row.radius_text[state.budget]));
    paperHeads.forEach((head) => cells.push(make("td", "failure", row.detail?.[`${head.dataset.detail}_text`] ?? "")));
    if (data.has_radius) cells.push(make("td", `status${isHeld(at) ? " held" : ""}`, isHeld(at) ? "certified" : "not proven"));
    return cells;
  }

  function factsOf(at) {
    const row = rowAt(at);
    const facts = [["Answer", row.label]];
    if (row.truth !== null) facts.push(["Truth", row.truth, ...(row.correct ? [] : [" ", make("span", "bad", "wrong")])]);
    if (row.runner_up !== null) facts.push(["Nearest rival", row.runner_up]);
    row.radius_text.forEach((text, k) => {
      facts.push([k === 0 ? data.radius_name : `with ${k} ${k === 1 ? "category" : "categories"} changed`, text]);
    });
    if (row.detail?.failure_text) facts.push(["Failure mass", row.detail.failure_text]);
    if (row.detail?.score_text) facts.push([data.score_name, row.detail.score_text], ["Margin to the threshold", row.detail.margin_text]);
    return facts;
  }

  function wordsOf(at) {
    const values = derand.tellCells?.(at) ? [] : details.get(at)?.pushes?.listed.map((push) => push.value) ?? [];
    return [classes[columns.label[at]], columns.truth ? classes[columns.truth[at]] : "", ...values];
  }

  function fits(wanted) {
    const label = classes.indexOf(wanted.slice("label:".length));
    return {
      held: isHeld, open: (at) => !isHeld(at),
      right: (at) => columns.truth[at] === columns.label[at], wrong: (at) => columns.truth[at] !== columns.label[at],
    }[wanted] ?? ((at) => columns.label[at] === label);
  }

  function rankClasses() { // places of classes in the order of their names
    const ranks = new Array(classes.length);
    [...classes.keys()].sort((a, b) => (classes[a] < classes[b] ? -1 : 1)).forEach((place, rank) => { ranks[place] = rank; });
    return ranks;
  }

  function keyOf(name) {
    if (name === "row") return columns.row;
    if (name === "radius") return columns.verdict ? columns.verdict.map((verdict) => ["flips", "undecided", "holds"].indexOf(verdict)) : columns.radius[state.budget];
    const ranks = rankClasses();
    return columns[name].map((place) => ranks[place]);
  }

  const signed = (value) => (value > 0 ? "+" : "") + String(Number(value.toPrecision(3)));

  function showPushes(pushes) {
    const list = one("#detail-pushes ul");
    if (!list) return;
    one("#detail-pushes").hidden = !pushes;
    if (!pushes) return;
    const largest = Math.max(...pushes.listed.map((push) => Math.abs(push.push)), 0) || 1;
    const line = (name, value, push, kind) => {
      const item = make("li");
      const label = make("span", "push-name", name);
      label.title = name;
      if (value) label.append(" ", make("span", "quiet", value));
      const bar = make("span", `push-bar ${push >= 0 ? "up" : "down"} ${kind}`);
      bar.style.setProperty("--share", Math.min(1, Math.abs(push) / largest).toFixed(3));
      item.append(label, bar, make("span", "push-value", signed(push)));
      return item;
    };
    const items = pushes.listed.map((push) => line(data.names[push.feature], push.value, push.push, ""));
    if (pushes.n_rest) items.push(line(`${pushes.n_rest} other ${pushes.n_rest === 1 ? "column" : "columns"}`, "", pushes.rest, "rest"));
    const total = make("li", "total");
    total.append(make("span", "push-name", data.together), make("span"), make("span", "push-value", signed(pushes.total)));
    list.replaceChildren(...items, total);
  }

  function lawFrame() {
    const picture = one("#detail .law svg");
    if (!picture) return null;
    const { left, right, top, floor } = picture.dataset;
    const width = (Number(right) - Number(left)) / data.axis.n_bins;
    return { picture, left: Number(left), right: Number(right), top: Number(top), floor: Number(floor), width };
  }

  function showLaw(row) {
    const frame = lawFrame();
    if (!frame) return;
    const law = row.detail?.law;
    one("#detail .law").hidden = !law;
    if (!law) return;
    const place = (bin) => (frame.left + bin * frame.width).toFixed(1);
    const height = (share) => (frame.floor - (share / 1000) * (frame.floor - frame.top)).toFixed(1);
    const parts = { held: "", failing: "" };
    law.density.forEach((share, k) => {
      const bin = law.start + k;
      const side = (bin >= data.axis.threshold_bin) === row.is_one ? "held" : "failing";
      parts[side] += `M${place(bin)},${frame.floor}V${height(share)}H${place(bin + 1)}V${frame.floor}Z`;
    });
    let below = `M${frame.left},${frame.floor}H${place(law.start)}`;
    law.cdf.forEach((share, k) => { below += `V${height(share)}H${place(law.start + k + 1)}`; });
    one(".law-held", frame.picture).setAttribute("d", parts.held);
    one(".law-failing", frame.picture).setAttribute("d", parts.failing);
    one(".law-cdf", frame.picture).setAttribute("d", `${below}H${frame.right}`);
    const told = law.percentile.length ? `. The part on the wrong side of the threshold has probability ${row.detail.failure_text}` : "";
    frame.picture.setAttribute("aria-label", `Distribution of the score of row ${row.name}${told}`);
    markPercentile();
  }

  function markPercentile() {
    const frame = lawFrame();
    const law = derand.details.get(derand.picked)?.law;
    if (!frame || !law) return;
    const mark = one(".law-percentile", frame.picture);
    if (!mark) return;
    if (law.percentile.length) {
      const label = all("#detail .law .legend li").at(-1).lastChild;
      label.textContent = `certified percentile at radius ${data.radii_text[state.at]}`;
    }
    const bin = Math.min(Math.max(law.percentile.length ? law.percentile[state.at] : law.mean, 0), data.axis.n_bins);
    mark.setAttribute("x1", frame.left + bin * frame.width);
    mark.setAttribute("x2", frame.left + bin * frame.width);
  }

  function onPick(at) {
    const row = rowAt(at);
    one("#detail-less").hidden = row.detail !== null;
    showLaw(row);
    showPushes(row.detail?.pushes ?? null);
  }

  all(".radius-input").forEach((input) => {
    state.at = Number(input.value);
    input.addEventListener("input", () => { state.at = Number(input.value); showRadius(); });
  });
  const table = derand.makeTable({ sort: "radius", keyOf, cellsOf, factsOf, wordsOf, fits, onPick });
  one("#budget")?.addEventListener("change", (event) => {
    state.budget = Number(event.target.value);
    table.resort("radius");
    showRadius();
  });
  showRadius();
})();
