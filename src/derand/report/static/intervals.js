"use strict";
// The page of a report on intervals: what its rows are, whose table and card are those of any report.
(() => {
  const { data, make, write, columns, nameOf, size } = derand;
  const near = (value) => write(value, 6, "near");
  const down = (value) => write(value, 6, "down");
  const up = (value) => write(value, 6, "up");
  const width = Float64Array.from({ length: size }, (_, at) => columns.high[at] - columns.low[at]);
  const isIn = (at) => columns.low[at] <= columns.truth[at] && columns.truth[at] <= columns.high[at];
  const reach = (at) => (Number.isNaN(columns.tolerance[at]) ? "" : write(columns.tolerance[at], 3, "down"));
  const least = Float64Array.from(width).sort()[Math.ceil(0.9 * size) - 1]; // of the widest tenth

  derand.rowAt = (at) => ({ // all that the page knows of a row of its table; the radius as that of a label
    name: nameOf(at),
    label: near(columns.value[at]),
    value: columns.value[at],
    low: columns.low[at],
    high: columns.high[at],
    low_text: down(columns.low[at]),
    high_text: up(columns.high[at]),
    radius: [data.report_radius === "inf" ? Infinity : data.report_radius],
    radius_text: [data.report_radius_text],
  });

  const markOutside = (at) => (isIn(at) ? [] : [" ", make("span", "outside", "outside")]);

  function cellsOf(at) {
    const texts = [near(columns.value[at]), down(columns.low[at]), up(columns.high[at]), write(width[at], 3, "up")];
    const cells = texts.map((text) => make("td", "", text));
    if (columns.truth) {
      const truth = make("td", "", near(columns.truth[at]));
      truth.append(...markOutside(at));
      cells.push(truth);
    }
    if (columns.tolerance) cells.push(make("td", "", reach(at)));
    return cells;
  }

  function factsOf(at) {
    const facts = [["Answer", near(columns.value[at])], ["Proven to lie between", `${down(columns.low[at])} and ${up(columns.high[at])}`], ["Width", write(width[at], 3, "up")]];
    if (columns.truth) facts.push(["Truth", near(columns.truth[at]), ...markOutside(at)]);
    if (columns.tolerance && reach(at)) facts.push([data.tolerance_name, reach(at)]);
    return facts;
  }

  const choices = {
    wide: (at) => width[at] >= least,
    inside: isIn,
    outside: (at) => !isIn(at),
    small: (at) => columns.tolerance[at] < data.report_radius,
    large: (at) => columns.tolerance[at] >= data.report_radius,
  };

  derand.makeTable({
    sort: "row",
    keyOf: (name) => (name === "width" ? width : columns[name]),
    cellsOf,
    factsOf,
    wordsOf: (at) => [near(columns.value[at]), columns.truth ? near(columns.truth[at]) : ""],
    fits: (wanted) => choices[wanted],
    onPick: () => {},
  }).refresh();
})();
