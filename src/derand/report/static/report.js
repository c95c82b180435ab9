"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const one = (selector, from = document) => from.querySelector(selector);
  const state = { at: 0, budget: 0, row: 0, sort: "radius", falling: false };
  const number = (value) => (value === "inf" ? Infinity : value);

  all(".needs-script").forEach((element) => { element.hidden = false; });
  one(".explore").classList.add("live");
  const body = one("#row-table tbody");
  const lines = all("tr", body);
  const status = lines.map((line) => one(".status", line));
  const radiusCells = lines.map((line) => one(".radius", line));
  const haystacks = data.rows.map((row) => {
    const values = row.pushes ? row.pushes.listed.map((push) => `${data.names[push.feature]} ${push.value}`) : [];
    return [row.row, row.name ?? "", row.label, row.truth ?? "", ...values].join(" ").toLowerCase();
  });

  const isHeld = (row) => {
    const radius = number(row.radius[state.budget]);
    return radius > 0 && radius >= data.radii[state.at];
  };

  function showRadius() {
    const radius = data.radii[state.at];
    const shared = Math.min(state.budget, data.shares.length - 1);
    const what = data.rows[0].truth === null ? "certified" : "right and certified";
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
    data.rows.forEach((row, at) => {
      const held = isHeld(row);
      if (!status[at]) return;
      status[at].textContent = held ? "certified" : "not proven";
      status[at].classList.toggle("held", held);
    });
    markPercentile();
    filter();
  }

  function filter() {
    const wanted = one("#show").value;
    const words = one("#find").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    data.rows.forEach((row, at) => {
      const fits = {
        "": true, held: isHeld(row), open: !isHeld(row), right: row.correct === true, wrong: row.correct === false,
      }[wanted] ?? row.label === wanted.slice("label:".length);
      const visible = fits && words.every((word) => haystacks[at].includes(word));
      lines[at].hidden = !visible;
      shown += visible;
    });
    const sample = data.sampled ? ` of the sample, ${data.n_rows} in all` : "";
    one("#shown").textContent = `${shown} of ${data.rows.length} rows shown${sample}`;
  }

  const keys = {
    row: (row) => row.row,
    label: (row) => row.label,
    truth: (row) => row.truth,
    runner_up: (row) => row.runner_up,
    radius: (row) => number(row.radius[state.budget]),
    failure: (row) => -number(row.radius[0]),
    score: (row) => Number(row.score_text),
    margin: (row) => Number(row.margin_text),
  };

  function sort() {
    const key = keys[state.sort];
    const turn = state.falling ? -1 : 1;
    const order = data.rows.map((row, at) => at).sort((a, b) => {
      const [left, right] = [key(data.rows[a]), key(data.rows[b])];
      if (left === right) return data.rows[a].row - data.rows[b].row;
      return (left < right ? -1 : 1) * turn;
    });
    body.append(...order.map((at) => lines[at]));
    all("#row-table th[data-sort]").forEach((head) => {
      if (head.dataset.sort === state.sort) head.setAttribute("aria-sort", state.falling ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }

  function make(tag, kind, text) {
    const element = document.createElement(tag);
    if (kind) element.className = kind;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function showFacts(row) {
    const list = make("dl", "row-facts");
    const add = (name, value, bad) => {
      const pair = make("div");
      const term = make("dd", "", value);
      if (bad) term.append(" ", make("span", "bad", "wrong"));
      pair.append(make("dt", "", name), term);
      list.append(pair);
    };
    add("Answer", row.label);
    if (row.truth !== null) add("Truth", row.truth, !row.correct);
    if (row.runner_up !== null) add("Nearest rival", row.runner_up);
    row.radius_text.forEach((text, k) => {
      add(k === 0 ? data.radius_name : `with ${k} ${k === 1 ? "category" : "categories"} changed`, text);
    });
    if (row.failure_text !== null) add("Failure mass", row.failure_text);
    if (row.score_text !== null) {
      add(data.score_name, row.score_text);
      add("Margin to the threshold", row.margin_text);
    }
    one("#detail-facts").replaceChildren(list);
  }

  const signed = (value) => (value > 0 ? "+" : "") + String(Number(value.toPrecision(3)));

  function showPushes(row) {
    const list = one("#detail-pushes ul");
    if (!list || !row.pushes) return;
    const largest = Math.max(...row.pushes.listed.map((push) => Math.abs(push.push)), 0) || 1;
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
    const items = row.pushes.listed.map((push) => line(data.names[push.feature], push.value, push.push, ""));
    if (row.pushes.n_rest) items.push(line(`${row.pushes.n_rest} other ${row.pushes.n_rest === 1 ? "column" : "columns"}`, "", row.pushes.rest, "rest"));
    const total = make("li", "total");
    total.append(make("span", "push-name", data.together), make("span"), make("span", "push-value", signed(row.pushes.total)));
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
    one("#detail .law").hidden = !row.law;
    if (!row.law) return;
    const place = (bin) => (frame.left + bin * frame.width).toFixed(1);
    const height = (share) => (frame.floor - (share / 1000) * (frame.floor - frame.top)).toFixed(1);
    const parts = { held: "", failing: "" };
    row.law.density.forEach((share, k) => {
      const bin = row.law.start + k;
      const side = (bin >= data.axis.threshold_bin) === row.is_one ? "held" : "failing";
      parts[side] += `M${place(bin)},${frame.floor}V${height(share)}H${place(bin + 1)}V${frame.floor}Z`;
    });
    let below = `M${frame.left},${frame.floor}H${place(row.law.start)}`;
    row.law.cdf.forEach((share, k) => { below += `V${height(share)}H${place(row.law.start + k + 1)}`; });
    one(".law-held", frame.picture).setAttribute("d", parts.held);
    one(".law-failing", frame.picture).setAttribute("d", parts.failing);
    one(".law-cdf", frame.picture).setAttribute("d", `${below}H${frame.right}`);
    const told = row.law.percentile.length ? `. The part on the wrong side of the threshold has probability ${row.failure_text}` : "";
    frame.picture.setAttribute("aria-label", `Law of the score of row ${row.name ?? row.row}${told}`);
    markPercentile();
  }

  function markPercentile() {
    const frame = lawFrame();
    const law = data.rows[state.row].law;
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

  function showRow(at) {
    state.row = at;
    const row = data.rows[at];
    lines.forEach((line) => line.removeAttribute("aria-current"));
    lines[at].setAttribute("aria-current", "true");
    one("#detail-title").textContent = `Row ${row.name ?? row.row.toLocaleString("en")}`;
    showFacts(row);
    showLaw(row);
    showPushes(row);
  }

  lines.forEach((line, at) => {
    const name = one(".row-name", line);
    const button = make("button", "", name.textContent);
    button.type = "button";
    button.setAttribute("aria-label", `Show row ${name.textContent}`);
    name.replaceChildren(button);
    line.addEventListener("click", () => {
      showRow(at);
      if (matchMedia("(max-width: 52rem)").matches) one("#detail").scrollIntoView({ block: "nearest" });
    });
  });
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
  all(".radius-input").forEach((input) => {
    state.at = Number(input.value);
    input.addEventListener("input", () => { state.at = Number(input.value); showRadius(); });
  });
  one("#budget")?.addEventListener("change", (event) => {
    state.budget = Number(event.target.value);
    data.rows.forEach((row, at) => { radiusCells[at].textContent = row.radius_text[state.budget]; });
    if (state.sort === "radius") sort();
    showRadius();
  });
  one("#show").addEventListener("change", filter);
  one("#find").addEventListener("input", filter);

  showRow(0);
  showRadius();

  addEventListener("beforeprint", () => { all("details").forEach((element) => { element.open = true; }); });

  const links = new Map(all("nav a").map((link) => [link.hash.slice(1), link]));
  if ("IntersectionObserver" in window) {
    const watcher = new IntersectionObserver((entries) => {
      entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
        links.forEach((link) => link.removeAttribute("aria-current"));
        links.get(entry.target.id)?.setAttribute("aria-current", "true");
      });
    }, { rootMargin: "-10% 0px -80% 0px" });
    all("main > section").forEach((section) => watcher.observe(section));
  }
})();
