"use strict";
(() => {
  const { data, all, one, make, rowAt } = derand;
  const state = { at: 0, budget: 0 };

  all(".needs-script").forEach((element) => { element.hidden = false; });
  one(".explore").classList.add("live");

  function showRadius() {
    const radius = data.radii[state.at];
    const shared = Math.min(state.budget, data.shares.length - 1);
    const what = data.listed.truth ? "right and certified" : "certified";
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
    table.setRadius(state.at);
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
    if (row.detail?.failure_text) add("Failure mass", row.detail.failure_text);
    if (row.detail?.score_text) {
      add(data.score_name, row.detail.score_text);
      add("Margin to the threshold", row.detail.margin_text);
    }
    one("#detail-facts").replaceChildren(list);
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
    frame.picture.setAttribute("aria-label", `Law of the score of row ${row.name}${told}`);
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

  function showRow(at) {
    derand.picked = at;
    const row = rowAt(at);
    one("#detail-title").textContent = `Row ${data.listed.name?.[at] ?? derand.count(row.row)}`;
    one("#detail-less").hidden = row.detail !== null;
    all("#detail .movable").forEach((link) => { link.hidden = at >= data.n_movable; });
    showFacts(row);
    showLaw(row);
    showPushes(row.detail?.pushes ?? null);
  }

  const table = derand.makeTable((at) => {
    showRow(at);
    if (matchMedia("(max-width: 52rem)").matches) one("#detail").scrollIntoView({ block: "nearest" });
  });
  all(".radius-input").forEach((input) => {
    state.at = Number(input.value);
    input.addEventListener("input", () => { state.at = Number(input.value); showRadius(); });
  });
  one("#budget")?.addEventListener("change", (event) => {
    state.budget = Number(event.target.value);
    table.setBudget(state.budget);
    showRadius();
  });

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
