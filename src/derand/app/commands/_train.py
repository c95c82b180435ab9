"""`derand train`: a model from a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from derand.app.commands._app import (
    AsJson,
    Cost,
    add_command,
    make_console,
    make_table,
    print_facts,
    print_json,
    require_choice,
    show_progress,
)

if TYPE_CHECKING:
    from derand.app.jobs import TrainingSummary

SCALINGS = ("standard", "range", "robust", "none")
"""Those of `derand.train`, which is slow to load, and none."""
SHOWN_SCALING = "robust for additive, else standard"
NORMS = ("1", "2", "inf")
"""Those that a model can be trained for."""


@add_command
def train(
    data: Annotated[Path, typer.Argument(help="Table to learn from, CSV or Parquet.", show_default=False)],
    target: Annotated[
        str, typer.Option(help="Column with the labels, or with numbers to be predicted.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save the model (JSON).", show_default=False)],
    task: Annotated[
        str | None,
        typer.Option(
            help="What the target holds: classes, or a number to be predicted.",
            show_default="number where it holds fractions or more than 20 whole numbers, else classes",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="How it is trained: one of {TRAINERS}; {DEFAULT_MODEL} if not given. For numbers: {REGRESSORS}.",
            show_default=False,
        ),
    ] = None,
    radius: Annotated[
        float | None,
        typer.Option(help="How large a change to train against; 0 is a plain model.", show_default="0.25"),
    ] = None,
    norm: Annotated[
        str | None, typer.Option(help="How changes of numbers are measured: 1, 2 or inf.", show_default="2")
    ] = None,
    l0: Annotated[
        int | None, typer.Option(help="How many categorical columns may change as well.", show_default="0")
    ] = None,
    freeze: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column that does not change. Repeatable.", show_default=False),
    ] = None,
    threat: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="What may change, in a file instead of --norm, --l0 and --freeze.",
            show_default=False,
        ),
    ] = None,
    monotone: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=DIRECTION",
            help="A number whose function only rises (increasing) or falls (decreasing). Repeatable.",
            show_default=False,
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="auto|A,B;C,D",
            help='Numbers that interact, two to four in a group: "auto" looks for pairs, "a,b;c,d" names them.',
            show_default=False,
        ),
    ] = None,
    regularization: Annotated[
        float | None,
        typer.Option(help="How smooth the functions are: a number above 0.", show_default="by cross-validation"),
    ] = None,
    min_rows_per_category: Annotated[
        int | None,
        typer.Option(
            metavar="ROWS",
            help="Categories of fewer rows get the value of one that was never seen.",
            show_default=False,
        ),
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            help="Kind and scale, such as gaussian:0.25; kinds are {NOISES}. For additive also none.",
            show_default="half of the radius for additive, else gaussian:0.25",
        ),
    ] = None,
    scaling: Annotated[
        str | None,
        typer.Option(
            help="Count noise and radii in deviations (standard), ranges (range) or interquartile ranges (robust) of "
            "each column, or none.",
            show_default=SHOWN_SCALING,
        ),
    ] = None,
    class_weight: Annotated[
        str | None, typer.Option(help='"balanced" gives all classes the same weight.', show_default=False)
    ] = None,
    decision_threshold: Annotated[
        float | None,
        typer.Option(
            help="From which probability of the second class on it is the answer; the score's threshold is moved.",
            show_default="0.5, or where class weights put it",
        ),
    ] = None,
    cost: Cost = None,
    rule: Annotated[
        str | None,
        typer.Option(
            help="How it answers: vote (of noisy copies) or mean (of their scores).",
            show_default="mean for additive, else vote",
        ),
    ] = None,
    categorical: Annotated[
        list[str] | None, typer.Option(help="A column of numbers that are categories; repeat it for more.")
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="A column to leave out; repeat it for more.")] = None,
    numerical: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A column of numbers to use though it looks like an identifier. Repeatable.",
            show_default=False,
        ),
    ] = None,
    dates: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A column of dates to learn from, as days; later files are read alike. Repeatable.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train a model on a table and save it: a classifier, or a regressor where the target is a number.

    Columns of numbers and of text are found by themselves; the printed table says what became of each.
    """
    for option, value, choices in (("--scaling", scaling, SCALINGS), ("--norm", norm, NORMS)):
        if value is not None:
            require_choice(option, value, choices)
    beside = [name for name, value in (("--norm", norm), ("--l0", l0), ("--freeze", freeze)) if value not in (None, [])]
    if threat is not None and beside:
        raise ValueError(f"--threat says all of what may change: leave {', '.join(beside)} out, or put it in {threat}.")
    with show_progress("training"):
        from derand.app.jobs import TASKS, choose_model, list_trainers, train_file
        from derand.certificates import RULES
        from derand.threat_text import NORMS as THREAT_NORMS
        from derand.threat_text import parse_pairs

        name = choose_model() if model is None else model
        if task is not None:
            require_choice("--task", task, TASKS)
        require_choice("--model", name, list(list_trainers()))
        if rule is not None:
            require_choice("--rule", rule, list(RULES))
        given = {
            "radius": radius,
            "norm": None if norm is None else THREAT_NORMS[norm],
            "l0": l0,
            "frozen": freeze,
            "threat": threat,
            "monotone": parse_pairs(monotone or (), "direction", "COLUMN=increasing", _read_direction),
            "groups": None if groups is None else read_groups(groups),
            "regularization": regularization,
            "min_rows_per_category": min_rows_per_category,
            "decision_threshold": decision_threshold,
            "cost": None if cost is None else read_cost(cost),
        }
        used: dict[str, Any] = {key: value for key, value in given.items() if value not in (None, [], {})}
        summary = train_file(
            data,
            target,
            output,
            task=task,
            model=name,
            noise=noise,
            scaling=read_scaling(scaling),
            class_weight=class_weight,
            rule=rule,
            categorical=categorical or (),
            ignored=ignore or (),
            numerical=numerical or (),
            dates=dates or (),
            spell=_spell,
            **used,
        )
    if as_json:
        print_json(summary)
    else:
        _print_summary(summary)


_OPTIONS = {"frozen": "--freeze"}
"""Options that are not named as the parameter that they set."""


def _spell(parameter: str) -> str:
    """The option that sets a parameter."""
    return _OPTIONS.get(parameter, f"--{parameter.replace('_', '-')}")


def read_scaling(text: str | None) -> str | None:
    """The scaling of an option: "auto", the model's own, where it is not given."""
    return "auto" if text is None else None if text == "none" else text


def read_groups(text: str) -> str | list[list[str]]:
    """Groups of columns as an option names them: groups apart by semicolons, columns by commas.

    Examples
    --------
    >>> read_groups("age,income; height, weight")
    [['age', 'income'], ['height', 'weight']]
    """
    if text.strip() == "auto":
        return "auto"
    found = [[name.strip() for name in group.split(",")] for group in text.split(";")]
    for group in found:
        if len(group) < 2 or not all(group):
            raise ValueError(
                f'--groups must be "auto" or groups of two columns or more such as "a,b;c,d", got {text!r}: columns of '
                "a group are apart by commas, groups by semicolons."
            )
    return found


def read_cost(text: str) -> dict[str, float]:
    """What mistakes cost as an option names them.

    Examples
    --------
    >>> read_cost("false_negative=5, false_positive=1")
    {'false_negative': 5.0, 'false_positive': 1.0}
    """
    from derand._core.text import quote_short
    from derand.threat_text import parse_pairs

    parts = [part.strip() for part in text.split(",")]
    found = parse_pairs(parts, "cost", "false_negative=5,false_positive=1", _read_number)
    if set(found) != {"false_negative", "false_positive"} or not all(0 < one < math.inf for one in found.values()):
        raise ValueError(
            "--cost must say what both mistakes cost, each a number above 0, such as "
            f"false_negative=5,false_positive=1, got {quote_short(text)}."
        )
    return found


def _read_number(value: str, name: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"--cost must be numbers such as false_negative=5, got {name}={value}.") from None


def _read_direction(value: str, column: str) -> str:
    require_choice(f"--monotone {column}", value, ("increasing", "decreasing"))
    return value


def _print_summary(summary: TrainingSummary) -> None:
    console = make_console()
    columns = [[column["name"], column["use"], column["detail"]] for column in summary["columns"]]
    console.print(make_table("Columns", ["column", "use", "detail"], columns))
    for warning in summary["warnings"]:
        console.print(f"Warning: {warning}", style="yellow", markup=False)
    print_facts(
        console,
        {
            "trained by": summary["trainer"],
            "rows": f"{summary['rows']:,}",
            "target": _describe_target(summary),
            **_describe_classes(summary),
            **_describe_training(summary),
            "rule": summary["rule"],
            "noise": f"{summary['noise']}, {_name_ball(summary)}, scaling {summary['scaling'] or 'none'}",
            **(_describe_labels(summary) if summary["task"] == "classes" else _describe_numbers(summary)),
            "model": summary["model"],
            "time": f"{summary['seconds']:.1f} s",
        },
    )


def _name_ball(summary: TrainingSummary) -> str:
    return "limits alone" if summary["norm"] is None else f"l{summary['norm']:g} balls"


def _describe_training(summary: TrainingSummary) -> dict[str, str]:
    """What it was trained for, where the trainer has a radius; how smooth its functions are, where it chose that."""
    from derand._core.text import format_exactly, format_short

    facts = {}
    if summary["radius"] is not None:
        unit = "" if summary["scaling"] is None else f", scaling {summary['scaling']}"
        facts["trained for radius"] = f"{format_exactly(summary['radius'])} ({_name_ball(summary)}{unit})"
    if summary["regularization"] is not None:
        facts["regularization"] = format_short(summary["regularization"])
    return facts


def _describe_target(summary: TrainingSummary) -> str:
    """What it was taken for and why, and how to say the other where that was a guess."""
    from derand._core.text import format_short

    what = "classes"
    if summary["task"] == "number":
        low, high = summary["target_range"]
        what = f"a number from {format_short(low)} to {format_short(high)}"
    other = "" if summary["other_task"] is None else f"; if that is wrong, --task {summary['other_task']}"
    return f"{summary['target']}, {what} ({summary['task_reason']}{other})"


def _describe_classes(summary: TrainingSummary) -> dict[str, str]:
    if summary["task"] != "classes":
        return {}
    facts = {"classes": ", ".join(f"{name} ({count})" for name, count in summary["classes"].items())}
    return facts | name_decision(list(summary["classes"]), summary["decision_threshold"])


def name_decision(classes: Sequence[Any], threshold: float | None) -> dict[str, str]:
    """From which probability on the answer is the second class, where that is not one half."""
    from derand._core.text import format_threshold

    if threshold is None or threshold == 0.5:
        return {}
    return {"decision": f"{classes[1]} from a probability of {format_threshold(threshold)} on"}


def _describe_labels(summary: TrainingSummary) -> dict[str, str]:
    """How a classifier does on its own rows."""
    from derand._core.text import format_exactly, format_percent, quote_short

    label, count = max(summary["classes"].items(), key=lambda one: one[1])
    constant = f"always {quote_short(label)}: {format_percent(count / sum(summary['classes'].values()))}"
    facts = {"accuracy on these rows": f"{format_percent(summary['training_accuracy'])} ({constant})"}
    held, radius = summary["training_certified_at_radius"], summary["radius"]
    if held is not None and radius:
        name = f"right and certified at {format_exactly(radius)} on these rows"
        facts[name] = f"{format_percent(held)} ({constant})"
    return facts


def _describe_numbers(summary: TrainingSummary) -> dict[str, str]:
    """How a regressor does on its own rows."""
    from derand._core.text import format_exactly, format_short, format_short_up

    facts = {"root of the mean square error on these rows": format_short(summary["training_rmse"])}
    width, radius = summary["training_mean_width"], summary["radius"]
    if width is not None:
        where = "within the limits" if summary["norm"] is None or radius is None else f"at {format_exactly(radius)}"
        facts[f"mean width of intervals {where} on these rows"] = format_short_up(width)
    return facts
