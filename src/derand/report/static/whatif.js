"use strict";
// What if: moves the columns of a row and answers from the model's own tables. It proves nothing: whether a moved row
// lies in the certified set of its row is decided on the safe side, and everything else is a computation.
(() => {
  const holder = document.getElementById("whatif-data");
  if (!holder) return;
  const model = JSON.parse(holder.textContent);
  const { data: page, one, make, rowAt } = derand;
  const cells = model.cells.map(derand.unpack); // a column each
  const number = (value) => (value === "inf" ? Infinity : value === "-inf" ? -Infinity : value);
  const { columns, members } = model;
  const isGap = (value) => Number.isNaN(value);
  const rowValues = (at) => cells.map((column) => (isGap(column[at]) ? null : column[at])); // a missing number is null
  const classes = page.classes;
  const isNumeric = model.answer === "number";
  const TOO_CLOSE = 1e-9; // of the range of a score, or of a share: less is not told apart here

  // ---- the noise: probability that it is at least z ----

  function erfc(z) {
    if (z < 0) return 2 - erfc(-z);
    if (z > 27) return 0;
    const bell = Math.exp(-z * z) / Math.sqrt(Math.PI);
    if (z < 2.5) { // erf as a series of positive terms
      let [term, sum] = [2 * z * bell, 2 * z * bell];
      for (let k = 1; term > 1e-18 * sum; k += 1) { term *= (2 * z * z) / (2 * k + 1); sum += term; }
      return 1 - sum;
    }
    let tail = z; // a continued fraction, from its end
    for (let k = 60; k > 0; k -= 1) tail = z + k / 2 / tail;
    return bell / tail;
  }

  const aboves = {
    gaussian: (z) => 0.5 * erfc(z / Math.SQRT2),
    laplace: (z) => (z > 0 ? 0.5 * Math.exp(-z) : 1 - 0.5 * Math.exp(z)),
    uniform: (z) => Math.min(1, Math.max(0, 0.5 - 0.5 * z)),
  };
  const above = aboves[model.noise];

  // ---- terms ----

  function findCell(edges, value) { // how many edges lie at or below the value
    let [low, high] = [0, edges.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (edges[middle] <= value) low = middle + 1; else high = middle;
    }
    return low;
  }

  const isNumber = (term) => columns[term.at[0]].kind === "number";

  function placeOf(term, values) { // the joint cell of a row
    if (!term.edges) return values[term.at[0]];
    return term.at.reduce((place, column, k) => {
      const edges = term.edges[k];
      const cell = values[column] === null ? edges.length + 1 : findCell(edges, values[column]);
      return place * (edges.length + 1 + (term.gaps[k] ? 1 : 0)) + cell;
    }, 0);
  }

  function sideMasses(edges, gap, column, value) { // probabilities of the cells of one axis
    const masses = new Array(edges.length + 1 + (gap ? 1 : 0)).fill(0);
    if (value === null) { masses[edges.length + 1] = 1; return masses; }
    let before = 1;
    edges.forEach((edge, k) => {
      const here = above((edge - value) / column.noise_scale);
      masses[k] = Math.max(0, before - here);
      before = here;
    });
    masses[edges.length] = before;
    return masses;
  }

  function cellMasses(term, values) {
    const wanted = term.at.map((column) => values[column]);
    if (term.known && term.known.every((value, k) => value === wanted[k])) return term.masses;
    term.known = wanted;
    term.masses = term.at
      .map((column, k) => sideMasses(term.edges[k], term.gaps[k], columns[column], wanted[k]))
      .reduce((joint, side) => joint.flatMap((mass) => side.map((share) => mass * share)));
    return term.masses;
  }

  function plainScores(term, values) {
    const n = model.n_outputs;
    if (term.slopes) {
      const value = values[term.at[0]];
      return value === null ? term.missing : term.slopes.map((slope) => slope * value);
    }
    const place = placeOf(term, values);
    return term.scores.slice(place * n, place * n + n);
  }

  function expectedScores(term, values) {
    if (!term.edges) return plainScores(term, values);
    const n = model.n_outputs;
    const sums = new Array(n).fill(0);
    cellMasses(term, values).forEach((mass, cell) => {
      if (mass > 0) for (let k = 0; k < n; k += 1) sums[k] += mass * term.scores[cell * n + k];
    });
    return sums;
  }

  // ---- the law of a sum, for votes: on the model's grid, or a coarser one within a known slack ----

  const MOST_STEPS = 2e7;

  function prepareLaw(member) {
    if (member.law) return member.law;
    const moving = member.terms.filter((term) => term.edges);
    const lows = moving.map((term) => term.scores.reduce((least, score) => Math.min(least, score), Infinity));
    let grid = 0;
    const cells = moving.reduce((sum, term) => sum + term.scores.length, 0);
    moving.forEach((term, t) => term.scores.forEach((score) => {
      let [a, b] = [grid, score - lows[t]];
      while (b) [a, b] = [b, a % b];
      grid = a;
    }));
    grid = grid || 1;
    const total = moving.reduce((sum, term, t) => sum + term.scores.reduce((most, score) => Math.max(most, score), -Infinity) - lows[t], 0);
    const most = Math.min(65536, Math.max(256, Math.floor(MOST_STEPS / Math.max(1, cells))));
    if (total / grid > most) grid = Math.ceil(total / most);
    let slack = 0;
    moving.forEach((term, t) => {
      term.steps = term.scores.map((score) => Math.round((score - lows[t]) / grid));
      slack += term.scores.reduce((worst, score, k) => Math.max(worst, Math.abs(score - lows[t] - grid * term.steps[k])), 0);
    });
    member.law = { moving, grid, slack, base: lows.reduce((sum, low) => sum + low, 0), active: null, tails: null };
    return member.law;
  }

  function massBySteps(term, values) {
    const found = new Map();
    cellMasses(term, values).forEach((mass, cell) => {
      if (mass > 0) found.set(term.steps[cell], (found.get(term.steps[cell]) ?? 0) + mass);
    });
    return found;
  }

  function tailsOfOthers(law, active, values) { // P(sum of all other terms >= k)
    let masses = new Float64Array(1).fill(1);
    law.moving.forEach((term) => {
      if (term === active) return;
      const found = massBySteps(term, values);
      const longer = new Float64Array(masses.length + [...found.keys()].reduce((most, step) => Math.max(most, step), 0));
      found.forEach((mass, step) => { for (let k = 0; k < masses.length; k += 1) longer[k + step] += mass * masses[k]; });
      masses = longer;
    });
    for (let k = masses.length - 2; k >= 0; k -= 1) masses[k] += masses[k + 1];
    return masses;
  }

  function findLaw(member, values, moved) { // the law of a sum: its least value, and P(sum of steps >= first)
    const law = prepareLaw(member);
    const others = JSON.stringify(values.map((value, at) => (moved.includes(at) ? 0 : value)));
    const active = law.moving.find((term) => moved.some((at) => term.at.includes(at))) ?? law.moving[0];
    if (law.active !== active || law.others !== others) {
      law.active = active;
      law.others = others;
      law.tails = tailsOfOthers(law, active, values);
    }
    const fixed = member.terms.filter((term) => !term.edges).reduce((sum, term) => sum + plainScores(term, values)[0], 0);
    const found = active ? massBySteps(active, values) : new Map([[0, 1]]);
    const above = (first) => {
      let sum = 0;
      found.forEach((mass, step) => {
        const k = Math.max(0, first - step);
        if (k < law.tails.length) sum += mass * law.tails[k];
      });
      return Math.min(1, sum);
    };
    const most = law.tails.length - 1 + [...found.keys()].reduce((last, step) => Math.max(last, step), 0);
    return { ...law, least: law.base + fixed, above, most };
  }

  function voteShare(member, values, moved) { // bounds of the share of copies that are above the threshold
    const law = findLaw(member, values, moved);
    const cut = -member.shift[0] - law.least;
    const atLeast = (level) => law.above(Math.floor(level / law.grid) + 1);
    return [atLeast(cut + law.slack), atLeast(cut - law.slack)];
  }

  function medianOf(member, values, moved) { // bounds of the least sum that half of the copies do not exceed
    const law = findLaw(member, values, moved);
    const place = (share) => { // the first step above which no more than this share lies
      let [low, high] = [0, law.most];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (law.above(middle + 1) <= share) high = middle; else low = middle + 1;
      }
      return law.least + member.shift[0] + low * law.grid;
    };
    return [place(0.5 + TOO_CLOSE) - law.slack, place(0.5 - TOO_CLOSE) + law.slack];
  }

  // ---- answers ----

  function addUp(member, values, ofTerm) {
    const sums = [...member.shift];
    let size = sums.reduce((most, shift) => Math.max(most, Math.abs(shift)), 0);
    member.terms.forEach((term) => ofTerm(term, values).forEach((score, k) => {
      sums[k] += score;
      size += Math.abs(score);
    }));
    return { sums, size };
  }

  // a sum's answer: its class, or null where it is too close to call; scores, or bounds of a share
  function answerOf(member, values, moved) {
    if (model.decides === "vote") {
      const share = voteShare(member, values, moved);
      const label = share[0] > 0.5 + TOO_CLOSE ? 1 : share[1] < 0.5 - TOO_CLOSE ? 0 : null;
      return { label, share };
    }
    const { sums, size } = addUp(member, values, model.decides === "mean" ? expectedScores : plainScores);
    const band = model.decides === "score" || model.decides === "none" ? 0 : TOO_CLOSE * (size + member.high - member.low);
    if (sums.length === 1) return { label: Math.abs(sums[0]) <= band && band > 0 ? null : sums[0] > 0 ? 1 : 0, sums };
    const lead = sums.indexOf(Math.max(...sums));
    const second = Math.max(...sums.filter((_, k) => k !== lead));
    return { label: band > 0 && sums[lead] - second <= band ? null : lead, sums };
  }

  function valueOf(member, values, moved) { // bounds of a number that is the answer
    if (model.decides === "median") return medianOf(member, values, moved).map((sum) => sum / model.points);
    const { sums, size } = addUp(member, values, model.decides === "mean" ? expectedScores : plainScores);
    const band = model.decides === "score" ? 0 : TOO_CLOSE * (size + member.high - member.low);
    return [(sums[0] - band) / model.points, (sums[0] + band) / model.points];
  }

  function answer(values, moved) {
    if (isNumeric) return { label: null, value: valueOf(members[0], values, moved) };
    const found = members.map((member) => answerOf(member, values, moved));
    if (!model.weights) return found[0];
    let [least, most, total] = [0, 0, 0];
    found.forEach(({ label }, k) => {
      const weight = Math.abs(model.weights[k]);
      const vote = label === null ? null : model.weights[k] < 0 ? 1 - label : label;
      total += weight;
      if (vote === 1) least += weight;
      if (vote !== 0) most += weight;
    });
    const share = total > 0 ? [least / total, most / total] : [0.5, 0.5];
    return { label: share[0] > 0.5 + TOO_CLOSE ? 1 : share[1] < 0.5 - TOO_CLOSE ? 0 : null, share };
  }

  // ---- the certified set of a row ----

  function fitsBox(column, own, value) { // closed ends, computed as the library computes them
    const { limit, domain, step } = column;
    let [low, high] = [-Infinity, Infinity];
    if (limit) {
      const down = "share" in limit ? limit.share * Math.abs(own) : number(limit.down);
      const up = "share" in limit ? limit.share * Math.abs(own) : number(limit.up);
      [low, high] = [own - down, own + up];
    }
    if (domain) [low, high] = [Math.max(low, number(domain[0])), Math.min(high, number(domain[1]))];
    if (value < low || value > high) return `“${column.name}” is beyond its limits`;
    const count = Math.round(Math.abs(value - own) / (step || 1));
    const stepped = value < own ? own - count * step : own + count * step;
    return step && stepped !== value ? `“${column.name}” changes by no multiple of ${step}` : "";
  }

  function sizeOf(changes) { // in the norm and units of the threat, never below the true one
    const norm = number(model.norm);
    if (norm === 0) return changes.length;
    const parts = changes.map(({ column, by }) => Math.abs(by) / column.unit + Number.MIN_VALUE);
    const largest = Math.max(0, ...parts);
    if (!(largest > 0 && largest < Infinity)) return largest;
    const up = 1 + (parts.length + 16) * 2 ** -52;
    if (norm === Infinity) return largest * up;
    if (norm === 1) return parts.reduce((sum, part) => sum + part, 0) * up;
    return largest * Math.sqrt(parts.reduce((sum, part) => sum + (part / largest) ** 2, 0)) * up;
  }

  function findCertified(row, own, values) { // whether a moved row lies in what is proven, and why (not)
    let [categories, gaps] = [0, 0];
    const changes = [];
    for (const [k, column] of columns.entries()) {
      if (values[k] === own[k]) continue;
      if (column.frozen) return { inside: false, why: `“${column.name}” may not change under the threat` };
      if (column.kind === "category") {
        categories += 1;
        if (!column.options[values[k]].allowed) return { inside: false, why: `“${column.name}” may not become that under the threat` };
      } else if (values[k] === null || own[k] === null) {
        gaps += 1;
      } else {
        const why = fitsBox(column, own[k], values[k]);
        if (why) return { inside: false, why };
        changes.push({ column, by: values[k] - own[k] });
      }
    }
    if (gaps > model.missing_budget) return { inside: false, why: "more numbers go missing or appear than the threat says" };
    const budget = model.budgets.findIndex((most) => most >= categories);
    if (budget < 0) return { inside: false, why: `${categories} ${categories === 1 ? "category" : "categories"} changed, more than certified` };
    const radius = row.radius[budget];
    const told = row.radius_text[budget];
    if (!(radius > 0)) return { inside: false, why: categories ? `nothing is certified with ${categories} ${categories === 1 ? "category" : "categories"} changed` : "nothing is certified about this row" };
    if (model.norm === null) return { inside: true, why: "the changes keep to the limits" };
    const size = sizeOf(changes);
    const what = `change of size ${writeUp(size)}, radius ${told}`;
    return { inside: number(model.norm) === 0 ? size <= radius : size < radius, why: what };
  }

  // ---- what is shown ----

  const write = (value) => String(Number(value.toPrecision(6)));
  const DAY = 86400000; // in milliseconds: dates are days since 1970
  function writeDate(value) { // as a browser's own boxes hold it; nothing where no date is so far off
    const moment = new Date(Math.round(value * 86400) * 1000);
    const text = Number.isNaN(moment.getTime()) ? "" : moment.toISOString();
    return text.length === 24 ? text.slice(0, Number.isInteger(value) ? 10 : 19) : "";
  }
  const writeCell = (column, value) => (column.date && writeDate(value).replace("T", " ")) || write(value);
  function writeUp(value) { // four digits, the last one rounded up; sizes are a few last places above the true ones
    if (!(value > 0 && value < Infinity)) return String(value);
    const near = Number(value.toPrecision(4));
    if (Math.abs(value - near) <= 256 * Number.EPSILON * value) return String(near);
    const last = 10 ** (Math.floor(Math.log10(value)) - 3);
    return String(Number((Math.ceil(value / last) * last).toPrecision(4)));
  }
  const percent = (share) => `${(Math.floor(share * 1000 + 1e-7) / 10).toFixed(1)} %`;
  const range = ([low, high]) => (high - low < 5e-4 ? percent(low) : `${percent(low)} to ${percent(high)}`);

  const state = { at: 0, own: [], values: [], start: null, moved: [] };
  const controls = [];

  function setValue(k, value) {
    state.values[k] = value;
    state.moved = [k];
    show();
  }

  function addSlider(column, k, line, name) {
    const slider = make("input");
    Object.assign(slider, { type: "range", id: `whatif-${k}` });
    const box = make("input", "whatif-number");
    if (column.date) {
      box.type = column.whole ? "date" : "datetime-local";
      box.step = column.whole ? "any" : "1"; // any day, or any second
    } else Object.assign(box, { type: "number", step: column.whole && !column.step ? "1" : "any" });
    box.autocomplete = "off";
    const readBox = () => (column.date ? box.valueAsNumber / DAY : box.valueAsNumber);
    const fillBox = (value, own) => {
      if (!column.date) return value === own ? write(value) : value;
      const text = writeDate(value);
      return column.whole || !text ? text.slice(0, 10) : text.length === 10 ? `${text}T00:00:00` : text;
    };
    if (column.ends) [box.min, box.max] = column.ends;
    box.setAttribute("aria-label", `${column.name}, as a ${column.date ? "date" : "number"}`);
    line.append(slider, box);
    const keepWhole = (value) => {
      if (!column.whole || column.step) return value;
      return column.ends ? Math.min(column.ends[1], Math.max(column.ends[0], Math.round(value))) : Math.round(value);
    };
    let gap = null;
    if (column.takes_missing) {
      gap = make("input");
      gap.type = "checkbox";
      const label = make("label", "whatif-gap");
      label.append(gap, " missing");
      gap.setAttribute("aria-label", `${column.name} is missing`);
      gap.addEventListener("change", () => setValue(k, gap.checked ? null : state.own[k] ?? column.middle));
      line.append(label);
    }
    slider.addEventListener("input", () => {
      const own = state.own[k];
      let value = Number(slider.value);
      if (column.step && own !== null) {
        const count = Math.round(Math.abs(value - own) / column.step);
        value = value < own ? own - count * column.step : own + count * column.step;
      } else if (own !== null && Math.abs(value - own) < column.grain / 4) value = own;
      else value = column.whole ? Math.round(value) : Number(value.toPrecision(7));
      setValue(k, value);
    });
    box.addEventListener("input", () => { if (box.value !== "" && Number.isFinite(readBox())) setValue(k, keepWhole(readBox())); });
    box.addEventListener("blur", () => controls[k].place(state.values[k]));
    name.htmlFor = slider.id;
    return (value) => {
      const own = state.own[k] ?? column.middle;
      const shown = value ?? own;
      const [low, high] = [Math.min(column.low, own), Math.max(column.high, own)];
      slider.min = own - Math.ceil((own - low) / column.grain) * column.grain; // so that its own value is a place of it
      slider.max = own + Math.ceil((high - own) / column.grain) * column.grain + (column.whole ? 0 : column.grain / 4);
      slider.step = column.grain;
      slider.value = shown;
      slider.setAttribute("aria-valuetext", value === null ? "missing" : writeCell(column, value));
      if (document.activeElement !== box) box.value = value === null ? "" : fillBox(value, own);
      box.title = value === null ? "" : String(value);
      slider.disabled = box.disabled = value === null;
      if (gap) gap.checked = value === null;
    };
  }

  function addMenu(column, k, line, name) {
    const menu = make("select");
    menu.id = `whatif-${k}`;
    column.options.forEach((option, at) => { const choice = make("option", "", option.text); choice.value = at; menu.append(choice); });
    menu.addEventListener("change", () => setValue(k, Number(menu.value)));
    line.append(menu);
    name.htmlFor = menu.id;
    return (value) => { menu.value = value; };
  }

  const tell = (column, value) => (column.kind === "category" ? column.options[value].text : value === null ? "missing" : writeCell(column, value));

  function build() {
    columns.forEach((column, k) => {
      const line = make("div", "whatif-line");
      const name = make("label", "whatif-name", column.name);
      line.append(name);
      const place = column.kind === "number" ? addSlider(column, k, line, name) : addMenu(column, k, line, name);
      const was = make("span", "whatif-was quiet");
      line.append(was);
      controls.push({ place, was, line });
      one(k < Number(holder.dataset.shown) ? "#whatif-columns" : "#whatif-more").append(line);
    });
    one("#whatif-row").append(...someRows().map(addChoice));
  }

  function addChoice(at) { // of the menu, which offers rows with details; others come from the table
    const row = rowAt(at);
    const told = isNumeric ? "" : `, ${page.has_radius ? `radius ${row.radius_text[0]}` : row.radius_text[0]}`;
    const choice = make("option", "", `Row ${row.name}: ${row.label}${told}`);
    choice.value = at;
    return choice;
  }

  const tellScores = (facts) => one("#whatif-scores").replaceChildren(...derand.list(facts).children);
  const someRows = () => derand.columns.detailed.filter((at) => at < model.n_rows);
  const ends = () => { // of the gauge: values and intervals of some rows
    model.span ??= someRows().map(rowAt).reduce(([low, high], row) => [Math.min(low, row.low, row.value), Math.max(high, row.high, row.value)], [Infinity, -Infinity]);
    return model.span;
  };
  const writeValue = ([low, high]) => (write(low) === write(high) ? write(low) : high - low < 1e-6 * Math.max(Math.abs(low), Math.abs(high), 1) ? write((low + high) / 2) : `${write(low)} to ${write(high)}`);

  function showValue(found, certified) { // a number: where it lies beside the row's interval
    const row = rowAt(state.at);
    const { low, high } = row;
    const isIn = certified.inside || (found.value[0] >= low && found.value[1] <= high);
    const isOut = !certified.inside && (found.value[1] < low || found.value[0] > high);
    const where = `the row’s interval, ${row.low_text} to ${row.high_text}`;
    const box = one("#whatif-interval");
    box.classList.toggle("held", isIn);
    box.dataset.inside = isIn ? "true" : isOut ? "false" : "";
    box.textContent = isIn ? `The value lies in ${where}.` : isOut ? `The value lies outside ${where}.` : `Too close to an end to call: ${where}.`;
    const [first, last] = ends();
    const place = (value) => Math.min(1, Math.max(0, last > first ? (value - first) / (last - first) : 0.5));
    const gauge = one("#whatif-gauge");
    Object.entries({ "--now": (found.value[0] + found.value[1]) / 2, "--was": row.value, "--from": low, "--to": high }).forEach(([name, value]) => gauge.style.setProperty(name, place(value)));
    one("#whatif-low").textContent = write(first);
    one("#whatif-high").textContent = write(last);
    tellScores([["The row itself (○)", row.label], ["Lowest and highest that is proven", `${row.low_text} to ${row.high_text}`]]);
  }

  function showScores(found) {
    const scores = (sums, k) => (sums[k] - (model.n_outputs === 1 ? members[0].shift[0] : 0)) / model.points;
    const chance = (lead) => percent(1 / (1 + Math.exp(-(model.odds[0] * lead / model.points + model.odds[1]))));
    const facts = [];
    const add = (...pair) => facts.push(pair);
    if (found.share) {
      add(`${holder.dataset.score} for “${classes[1]}”`, range(found.share));
      add("The row itself (○)", range(state.start.share));
    } else if (found.sums.length === 1) {
      add(holder.dataset.score, write(scores(found.sums, 0)));
      add("The row itself (○)", write(scores(state.start.sums, 0)));
      add("Threshold", write(-members[0].shift[0] / model.points));
      if (model.odds) add(`Probability of “${classes[1]}”`, `${chance(found.sums[0])} (row: ${chance(state.start.sums[0])})`);
    } else found.sums.forEach((_, k) => add(classes[k], `${write(scores(found.sums, k))} (row: ${write(scores(state.start.sums, k))})`));
    tellScores(facts);
    showGauge(found);
  }

  function showGauge(found) {
    const gauge = one("#whatif-gauge");
    gauge.hidden = !(found.share || found.sums.length === 1);
    if (gauge.hidden) return;
    const { low, high, shift } = members[0];
    const ends = found.share ? [0, 1] : low < high ? [low + shift[0], high + shift[0]] : lineEnds();
    const cut = found.share ? 0.5 : 0;
    const at = (part) => (found.share ? (part.share[0] + part.share[1]) / 2 : part.sums[0]);
    const place = (value) => Math.min(1, Math.max(0, value < cut ? 0.5 - 0.5 * (cut - value) / (cut - Math.min(ends[0], cut - 1e-300)) : 0.5 + 0.5 * (value - cut) / (Math.max(ends[1], cut + 1e-300) - cut)));
    gauge.style.setProperty("--now", place(at(found)));
    gauge.style.setProperty("--was", place(at(state.start)));
  }

  function lineEnds() { // a linear model has no range: that of some rows
    model.ends ??= someRows().reduce((most, at) => Math.max(most, Math.abs(addUp(members[0], rowValues(at), plainScores).sums[0])), 1e-300);
    return [-model.ends, model.ends];
  }

  function show() {
    const row = rowAt(state.at);
    const { own } = state;
    const found = answer(state.values, state.moved);
    const certified = findCertified(row, own, state.values);
    const before = classes.indexOf(row.label);
    const n = state.values.filter((value, k) => value !== own[k]).length;
    const proven = isNumeric ? `its value is proven to lie between ${row.low_text} and ${row.high_text}` : "this answer is proven";
    const label = certified.inside || n === 0 ? before : model.decides === "none" ? null : found.label;
    const unknown = model.decides === "none" ? "not computed here: ask predict" : "too close to call here: ask predict";
    one("#whatif-answer").textContent = isNumeric ? (n === 0 ? row.label : writeValue(found.value)) : label === null ? unknown : classes[label];
    one("#whatif-answer").classList.toggle("unsure", label === null && !isNumeric);
    const change = label === null || n === 0 ? "" : label === before ? "as for the row" : `changed: the row gets “${row.label}”`;
    one("#whatif-change").textContent = n === 0 ? "the row as it is" : `${n} ${n === 1 ? "column" : "columns"} moved${change ? `; ${change}` : ""}`;
    one("#whatif-change").classList.toggle("bad", label !== null && label !== before);
    const box = one("#whatif-certified");
    box.classList.toggle("held", certified.inside);
    box.dataset.inside = certified.inside;
    box.textContent = `${certified.inside ? "Within" : "Outside"} the certified set of row ${row.name}: ${certified.inside ? proven : "nothing is proven about the moved row"} (${certified.why}).`;
    if (isNumeric) showValue(found, certified); else showScores(found);
    controls.forEach(({ place, was, line }, k) => {
      if (state.moved.length && !state.moved.includes(k)) return; // the others stay as they are
      place(state.values[k]);
      const moved = state.values[k] !== own[k];
      was.textContent = moved ? `was ${tell(columns[k], own[k])}` : "";
      line.classList.toggle("moved", moved);
    });
    one("#whatif-back").disabled = n === 0;
    Object.assign(one("#whatif").dataset, { label: label ?? "", found: found.label ?? "", score: JSON.stringify(found.value ?? found.share ?? found.sums) });
  }

  function pick(at) {
    state.at = at;
    state.own = rowValues(at);
    state.values = [...state.own];
    state.moved = [];
    state.start = answer(state.values, []);
    const menu = one("#whatif-row");
    menu.value = at;
    if (menu.value !== String(at)) menu.append(addChoice(at));
    menu.value = at;
    show();
  }

  derand.cellNames = columns.map((column) => column.name);
  derand.tellCell = (at, k) => (at < model.n_rows ? tell(columns[k], isGap(cells[k][at]) ? null : cells[k][at]) : undefined);
  derand.tellCells = (at) => (at < model.n_rows ? columns.map((_, k) => derand.tellCell(at, k)) : undefined);
  build();
  one("#whatif-row").addEventListener("change", (event) => pick(Number(event.target.value)));
  one("#whatif-back").addEventListener("click", () => { pick(state.at); one("#whatif-row").focus(); });
  one("#detail-whatif")?.addEventListener("click", () => { if (derand.picked < model.n_rows) pick(derand.picked); });
  pick(Math.floor(model.n_rows / 2)); // the first ones are the weakest, of which little is certified
})();
