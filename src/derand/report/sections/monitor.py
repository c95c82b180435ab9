"""The page about batches of rows: how much of each holds, what differs from the first, what training did not see.

Reads the dict of `Monitor` alone. Must not compute shares or compare them.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from derand._core.text import Facts, format_count, format_percent, format_percent_interval, shorten
from derand.report import _blocks as ui
from derand.report._charts import SHARES, Frame, wrap_svg
from derand.report._markup import percent

_ALARM, _NAME = "alarm", 24
_MOST_NAMED = 12
_NONE = "\N{EN DASH}"


def _holds(summary: Facts) -> Sequence[ui.Block]:
    alarms = [one["name"] for one in summary["batches"] if one["alarm"]]
    head = ["batch", "rows", "hold", "95 % interval"]
    has_flips = summary["norm"] is None
    head += ["can be flipped", "undecided"] if has_flips else []
    rows: list[ui.Line] = []
    for batch in summary["batches"]:
        share = batch["measures"][0]["share"]
        cells: ui.Line = [
            ui.name_cell(batch["name"], _NAME),
            format_count(batch["n_rows"]),
            percent(share["value"]),
            f"{format_percent(share['low'])} to {format_percent(share['high'], way='up')}",
        ]
        cells += ui.count_cells(batch["flips"], batch["undecided"]) if has_flips else []
        rows.append([*cells, _ALARM if batch["alarm"] else _NONE])
    listed = [f"{one['name']}: {one['sentence']}." for one in summary["batches"] if one["alarm"]]
    return [
        ui.Heading("Does the guarantee still hold?", "holds"),
        ui.Group(
            "banner warning" if alarms else "banner",
            [ui.Paragraph(summary["sentence"], "banner-title"), ui.Paragraph(summary["held"])],
        ),
        ui.Table([*head, "beyond chance"], rows, "Answers that hold, by batch"),
        ui.Figure(_draw(summary), "Share of answers that hold, with 95 % intervals"),
        ui.Bullets(listed, "findings"),
        ui.Paragraph(
            f"A batch gives an alarm where any of {summary['n_comparisons']} shares differs from that of "
            f"“{summary['names'][0]}” by more than chance. Where nothing has changed, that happens to a batch with a "
            f"probability of at most {format_percent(summary['rate'])}, for rows that are drawn independently of each "
            "other (Fisher's exact test, Holm's method).",
            "small",
        ),
    ]


def _draw(summary: Facts) -> Markup:
    """The share that holds, batch by batch."""
    batches = summary["batches"]
    frame = Frame(760, 220, (-0.5, len(batches) - 0.5), (0.0, 1.0))
    parts = [frame.grid(SHARES)]
    first = frame.y(batches[0]["measures"][0]["share"]["value"])
    parts.append(frame.rule(first, "line-base"))
    for at, batch in enumerate(batches):
        share, x = batch["measures"][0]["share"], frame.x(at)
        kind = "bar-wrong" if batch["alarm"] else "dot"
        title = f"{batch['name']}: {format_percent_interval(share['value'], share['low'], share['high'])}"
        parts.append(
            f'<line class="whisker" x1="{x}" x2="{x}" y1="{frame.y(share["low"])}" y2="{frame.y(share["high"])}"/>'
        )
        y = frame.y(share["value"])
        parts.append(f'<circle class="{kind}" cx="{x}" cy="{y}" r="4"><title>{escape(title)}</title></circle>')
    every = max(1, len(batches) // 6)
    ticks = [(float(at), shorten(one["name"], 12)) for at, one in enumerate(batches) if at % every == 0]
    parts.append(frame.ticks(ticks, "batch"))
    described = "; ".join(f"{one['name']} {percent(one['measures'][0]['share']['value'])}" for one in batches)
    return wrap_svg(frame, "".join(parts), "Share of answers that hold", described)


def _tabulate(summary: Facts, kinds: Sequence[str], label: str) -> ui.Table:
    """One line per share, one column per batch; what differs beyond chance says which way."""
    chosen = [at for at, one in enumerate(summary["batches"][0]["measures"]) if one["kind"] in kinds]
    rows: list[list[str | ui.Cell]] = []
    for at in chosen:
        cells: list[str | ui.Cell] = [ui.name_cell(summary["batches"][0]["measures"][at]["title"], 60)]
        for batch in summary["batches"]:
            one = batch["measures"][at]
            arrow = {"": "", "more": " ▲", "less": " ▼"}[one["mark"]]
            text = _NONE if one["share"] is None else f"{percent(one['share']['value'])}{arrow}"
            cells.append(
                ui.Cell(text, title=f"{format_count(one['count'])} of {format_count(one['total'])}, {one['text']}")
            )
        rows.append(cells)
    return ui.Table(["", *(ui.name_cell(name, _NAME) for name in summary["names"])], rows, label)


_ARROWS = "▲ and ▼: more and less than in the first batch, beyond chance."


def _parts(summary: Facts) -> Sequence[ui.Block]:
    blocks: list[ui.Block] = [
        ui.Heading("By answer and subgroup", "parts"),
        ui.Paragraph(f"The share of the rows of each answer, and of each subgroup, that hold. {_ARROWS}"),
        _tabulate(summary, ["class", "group"], "Rows that hold, by answer and subgroup"),
        ui.Paragraph(
            "How often each answer is given, how many rows are outside of what training saw, and answers that "
            "are right where labels are known."
        ),
        _tabulate(summary, ["answer", "outside", "right"], "Answers, rows outside, right answers"),
    ]
    return blocks


def _columns(summary: Facts) -> Sequence[ui.Block]:
    return [
        ui.Heading("Which columns became weaker", "columns"),
        ui.Paragraph(
            "The share of all rows whose answer flips by a change that was found, and that has a part of this column: "
            f"where it rises, the column flips more answers than before. {_ARROWS} These say why, and give no alarm."
        ),
        _tabulate(summary, ["column"], "Rows that flip with a part of each column"),
    ]


def _outside(summary: Facts) -> Sequence[ui.Block]:
    names = list(dict.fromkeys(name for batch in summary["batches"] for name in batch["outside"]))
    most = sorted(names, key=lambda name: -max(batch["outside"].get(name, 0) for batch in summary["batches"]))
    rows: list[ui.Line] = [
        [ui.name_cell(name, 60), *ui.count_cells(*(batch["outside"].get(name, 0) for batch in summary["batches"]))]
        for name in most[:_MOST_NAMED]
    ]
    said = (
        "Values of categories that no training row had, and numbers beyond the range of training."
        if summary["has_ranges"]
        else "Values of categories that no training row had, and whole numbers beyond the range of training. Ranges of "
        "other numbers are known where the training table is given."
    )
    table: list[ui.Block] = [ui.Table(["column", *summary["names"]], rows, "Values outside, by column and batch")]
    return [
        ui.Heading("Outside of what training saw", "outside"),
        ui.Paragraph(said),
        *(table if rows else [ui.Paragraph("No row of any batch has such a value.")]),
    ]


def _computed(summary: Facts) -> Sequence[ui.Block]:
    return [
        ui.Heading("How computed", "computed"),
        ui.Bullets(summary["threat"]),
        ui.Table(
            ["made from", "SHA-256"],
            [[ui.Cell(what), sha] for what, sha in summary["checksums"]],
            "Checksums",
            kind="",
            is_cut=False,
        ),
    ]


def _has_columns(summary: Facts) -> str:
    measures = summary["batches"][0]["measures"]
    return "Columns" if any(one["kind"] == "column" for one in measures) else ""


SECTIONS = (
    ui.Section("holds", lambda s: "Guarantee", _holds),
    ui.Section("parts", lambda s: "Answers and subgroups", _parts),
    ui.Section("columns", _has_columns, _columns),
    ui.Section("outside", lambda s: "Outside of training", _outside),
    ui.Section("computed", lambda s: "How computed", _computed),
)
