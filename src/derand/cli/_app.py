"""The command line: one thin function per command, which calls the library and prints what it returns.

Heavy libraries are imported inside the functions, so that `--help` and `--version` answer at once.
"""

from __future__ import annotations

import functools
import json
import math
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from derand import __version__

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Command = TypeVar("Command", bound=Callable[..., None])
_PATIENCE = 1.0
"""Seconds of work before a progress bar appears."""

app = typer.Typer(
    name="derand",
    help="Deterministic, provable robustness for tabular models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for other programs.")]


def main() -> None:
    """Run the command line; bad input gives one line on stderr and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except typer.Abort:
        code = 130
    except BrokenPipeError:  # whoever read our output has had enough
        sys.stdout = None
        code = 0
    except Exception as error:
        explain = getattr(error, "format_message", None)  # what typer raises for wrong usage
        if explain is None:
            raise
        code = _complain(explain()) if explain() else 0  # empty: no command was given, and help was printed
    sys.exit(code)


def _complain(message: str) -> int:
    """One line on stderr; the exit code for bad input."""
    sys.stderr.write(f"Error: {' '.join(message.split())}\n")
    return 2


def _clear_errors(command: Command) -> Command:
    """Turn the errors that bad input causes into one line and exit code 2."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except BrokenPipeError:
            raise
        except (ValueError, OSError) as error:
            raise typer.Exit(_complain(str(error))) from None

    return run  # type: ignore[return-value]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"derand {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


@app.command()
@_clear_errors
def train(
    data: Annotated[Path, typer.Argument(help="Table to learn from, CSV or Parquet.", show_default=False)],
    target: Annotated[str, typer.Option(help="Column with the labels, of two kinds.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save the model (JSON).", show_default=False)],
    noise: Annotated[
        str, typer.Option(help="Kind and scale: gaussian (certifies l2 balls), uniform or laplace (l1).")
    ] = "gaussian:0.25",
    scaling: Annotated[
        str,
        typer.Option(help="Count noise and radii in deviations (standard) or ranges (range) of each column, or none."),
    ] = "standard",
    class_weight: Annotated[
        str | None, typer.Option(help='"balanced" gives both classes the same weight.', show_default=False)
    ] = None,
    categorical: Annotated[
        list[str] | None, typer.Option(help="A column of numbers that are categories; repeat it for more.")
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="A column to leave out; repeat it for more.")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a classifier on a table and save it.

    Columns of numbers and of text are found by themselves; the printed table says what became of each.
    """
    _require_choice("--scaling", scaling, ("standard", "range", "none"))
    with _show_progress("training"):
        from derand.jobs import train_file

        summary = train_file(
            data,
            target,
            output,
            noise=noise,
            scaling=None if scaling == "none" else scaling,
            class_weight=class_weight,
            categorical=categorical or (),
            ignored=ignore or (),
        )
    if as_json:
        _print_json(summary)
        return
    console = _console()
    console.print(
        _make_table("Columns", ["column", "use", "detail"], [list(column.values()) for column in summary["columns"]])
    )
    for warning in summary["warnings"]:
        console.print(f"Warning: {warning}", style="yellow", markup=False)
    counts = ", ".join(f"{name} ({count})" for name, count in summary["classes"].items())
    _print_facts(
        console,
        {
            "rows": f"{summary['rows']:,}",
            "classes": counts,
            "noise": f"{summary['noise']}, l{summary['norm']} balls, scaling {summary['scaling'] or 'none'}",
            "accuracy on these rows": _percent(summary["training_accuracy"]),
            "model": summary["model"],
            "time": f"{summary['seconds']:.1f} s",
        },
    )


@app.command()
@_clear_errors
def certify(
    model: Annotated[Path, typer.Argument(help="A model that `derand train` saved.", show_default=False)],
    data: Annotated[Path, typer.Argument(help="Table to certify, CSV or Parquet.", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write row, label, failure, radius.", show_default=False)
    ],
    target: Annotated[
        str | None, typer.Option(help="Column with the true labels, to measure accuracy.", show_default=False)
    ] = None,
    radii: Annotated[str, typer.Option(help="Radii at which certified accuracy is measured.")] = "0,0.25,0.5,1",
    l0: Annotated[int, typer.Option(help="How many categorical columns may change at the same time.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Certify every row of a table: its label, and the radius within which no change can flip it.

    Columns are matched by name. The file is read and written in batches, so it may be larger than memory.
    """
    wanted = _parse_radii(radii)
    with _show_progress("certifying", unit="rows") as advance:
        from derand.jobs import certify_file

        summary = certify_file(model, data, output, target=target, radii=wanted, l0=l0, advance=advance)
    if as_json:
        _print_json(summary)
        return
    console = _console()
    if summary["columns_not_used"]:
        _print_facts(console, {"columns not used": ", ".join(summary["columns_not_used"])})
    for name, count in summary["unseen_categories"].items():
        _print_facts(console, {f"values of {name!r} that training did not see": f"{count:,}"})
    changes = f", and at most {l0} categorical changes" if l0 else ""
    facts = {
        "noise": f"{summary['noise']}, l{summary['norm']} balls{changes}",
        "rows": f"{summary['rows']:,}, of which {summary['certified_rows']:,} certified",
    }
    if summary["rows_of_infinite_radius"]:
        facts["rows that no change of numbers can flip"] = f"{summary['rows_of_infinite_radius']:,}"
    if target is not None:
        console.print(_accuracy_table(summary))
        facts["average certified radius"] = _cut(summary["average_certified_radius"])
    _print_facts(console, {**facts, "written": summary["output"], "time": f"{summary['seconds']:.1f} s"})


@app.command()
@_clear_errors
def report(
    model: Annotated[Path, typer.Argument(help="A model that `derand train` saved.", show_default=False)],
    data: Annotated[Path, typer.Argument(help="Table to report on, CSV or Parquet.", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write it: .html, .md, .tex or .json.", show_default=False)
    ],
    target: Annotated[str | None, typer.Option(help="Column with the true labels.", show_default=False)] = None,
    train: Annotated[
        Path | None, typer.Option(help="The training table, to compare with training without noise.")
    ] = None,
    group: Annotated[list[str] | None, typer.Option(help="A column of subgroups; repeat it for more.")] = None,
    radius: Annotated[float | None, typer.Option(help="The radius that the text speaks of.")] = None,
    l0: Annotated[
        int | None,
        typer.Option(
            help="Largest number of categorical columns that may change; if not given, 3, or all where there are fewer."
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the report.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a report on a table that anyone can read: what is proven, with charts, in one file."""
    with _show_progress("writing the report"):
        from derand.jobs import report_file

        summary = report_file(
            model, data, output, target=target, train=train, groups=group or (), radius=radius, l0=l0, title=title
        )
    if as_json:
        _print_json(summary)
        return
    console = _console()
    console.print(summary["guarantee"], markup=False)
    _print_facts(console, {"written": summary["output"], "time": f"{summary['seconds']:.1f} s"})


@app.command()
@_clear_errors
def datasets(as_json: AsJson = False) -> None:
    """List the datasets that `derand.datasets.load(name)` can load."""
    from derand.datasets import CATALOG, is_available

    entries: list[dict[str, Any]] = [
        {"name": name, "file": entry.file, "available": is_available(name), "summary": entry.summary}
        for name, entry in CATALOG.items()
    ]
    if as_json:
        _print_json(entries)
        return
    rows = [
        [entry["name"], entry["file"] or "-", "yes" if entry["available"] else "no", entry["summary"]]
        for entry in entries
    ]
    _console().print(_make_table("Datasets", ["name", "file", "here", "what it is"], rows))
    typer.echo("Files are looked for in the folder $DERAND_DATA, then in the user's cache; load(name) says more.")


@app.command()
@_clear_errors
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the plot and the report.")] = Path("demo"),
    as_json: AsJson = False,
) -> None:
    """Train and certify on scikit-learn's breast-cancer data; leave a plot and a report behind."""
    with _show_progress("training and certifying"):
        from derand.demo import run_demo

        result = run_demo(output)
    if as_json:
        _print_json(result)
        return
    console = _console()
    console.print(_accuracy_table(result))
    for title, name in (("Most certain test rows", "most_certain"), ("Least certain test rows", "least_certain")):
        console.print(_rows_table(title, result[name]))
    seconds = result["seconds"]
    _print_facts(
        console,
        {
            "trained on": f"{result['training_rows']} rows, noise {result['noise']} in standard deviations",
            "certified": f"{result['test_rows']} test rows, l{result['norm']} balls",
            "average certified radius": _cut(result["average_certified_radius"]),
            "time": f"training {seconds['train']:.2f} s, certifying {seconds['certify']:.2f} s "
            f"(after {seconds['compile']:.1f} s of loading or compiling; compiling happens once)",
            "plot": result["plot"],
            "report": f"{result['report']} (open it in a browser)",
        },
    )


@app.command()
@_clear_errors
def bench(
    name: Annotated[
        str,
        typer.Argument(help="core, train, certify, joint, growth, kernels, boost, quality or gpu.", show_default=False),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the results as JSON (and a plot).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure speed against the plain version of the paper's algorithms, in one run on the same inputs."""
    with _show_progress(f"measuring {name}"):
        from derand.bench import run_bench, write_bench
        from derand.files import require_folder

        if output is not None:
            require_folder(output)
        result = run_bench(name)
    if output is not None:
        write_bench(result, output)
    if as_json:
        _print_json(result)
        return
    typer.echo(result["about"])
    _print_facts(_console(), {key.replace("_", " "): _figure(value) for key, value in result["results"].items()})
    machine = result["machine"]
    typer.echo(f"{machine['system']}, {machine['processor']}, {machine['cores']} cores")


@app.command()
@_clear_errors
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tables or figures of the paper, such as tab:baseline-both, or claims.", show_default=False
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them (about ten minutes on two cores).")] = False,
    list_names: Annotated[bool, typer.Option("--list", help="Print the names and stop.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Use a part of the test rows; tolerances are wider.")] = False,
    results: Annotated[
        Path, typer.Option(help="Folder for tables, figures, and what an interrupted run has done so far.")
    ] = Path("derand-results"),
    document: Annotated[
        Path | None, typer.Option(help="Also write a summary of all that differs, and why (Markdown).")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Threads; all cores if not given.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Carry out tables and figures of the paper and set them beside the published numbers.

    Datasets are looked for as `derand datasets` says. Run the same command again to go on after an interruption.
    """
    from derand.reproduce import choose_names, list_short_rows, read_items, summarize, write_document
    from derand.reproduce import reproduce as carry_out

    if list_names:
        titles = {name: item.title for name, item in read_items().items()}
        _print_names(titles, as_json)
        return
    chosen = choose_names(names or [], everything=everything)
    try:
        with _show_steps("reproducing") as tell:
            reports = carry_out(chosen, results, quick=quick, n_jobs=jobs, on_progress=tell)
    except KeyboardInterrupt:
        sys.stderr.write(f"Interrupted. What is done is kept in {results}: run the same command again to go on.\n")
        raise typer.Exit(130) from None
    if document is not None:
        write_document(document, reports)
    if as_json:
        _print_json([report.as_dict() for report in reports])
        return
    console = _console()
    for report in reports:
        if report.cells and len(reports) == 1:
            console.print(_make_table(report.item.title, *list_short_rows(report.cells)))
        _print_facts(console, {report.item.name: summarize(report)})
        _print_facts(console, {"written": ", ".join(str(path) for path in report.files)})


def _print_names(titles: dict[str, str], as_json: bool) -> None:
    """Names with their titles for people and as JSON; bare names, one per line, for a pipe."""
    if as_json:
        _print_json([{"name": name, "title": title} for name, title in titles.items()])
    elif sys.stdout.isatty():
        _console().print(
            _make_table("Tables and figures", ["name", "what it shows"], [list(pair) for pair in titles.items()])
        )
    else:
        typer.echo("\n".join(titles))


def _require_choice(option: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"{option} must be one of {', '.join(choices)}, got {value!r}.")


def _parse_radii(text: str) -> list[float]:
    try:
        radii = [float(part) for part in text.split(",")]
    except ValueError:
        radii = [math.nan]
    if not all(math.isfinite(radius) and radius >= 0 for radius in radii):
        raise ValueError(f"--radii must be numbers, 0 or larger, separated by commas, got {text!r}.")
    return radii


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def _make_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, box=box.SIMPLE, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right" if column in ("radius", "failure", "share", "row") else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _accuracy_table(result: dict[str, Any]) -> Table:
    rows = [["no change", _percent(result["accuracy"])]]
    rows += [[f"{entry['radius']:g}", _percent(entry["share"])] for entry in result["certified_accuracy"]]
    return _make_table("Certified accuracy", ["radius", "share"], rows)


def _rows_table(title: str, entries: Sequence[dict[str, Any]]) -> Table:
    from derand.text import format_up

    rows = [
        [
            str(entry["row"]),
            entry["label"],
            "yes" if entry["correct"] else "no",
            format_up(entry["failure"], 2),
            _cut(entry["radius"]),
        ]
        for entry in entries
    ]
    return _make_table(title, ["row", "label", "correct", "failure", "radius"], rows)


def _print_facts(console: Console, facts: dict[str, str]) -> None:
    for name, value in facts.items():
        console.print(f"{name}: {value}", markup=False)


def _cut(radius: float) -> str:
    from derand.text import format_down

    return format_down(radius, 4)


def _percent(share: float) -> str:
    from derand.text import format_percent

    return format_percent(share)


def _figure(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(_as_plain(value), indent=2, allow_nan=False))


def _as_plain(value: Any) -> Any:
    """The same with infinite numbers as text: JSON has none."""
    if isinstance(value, dict):
        return {name: _as_plain(inside) for name, inside in value.items()}
    if isinstance(value, list):
        return [_as_plain(inside) for inside in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def _show_progress(what: str, unit: str = "") -> Iterator[Callable[[int], None]]:
    """A bar that counts up, without a known end."""
    with _show_bar(what, unit) as update:
        yield lambda done: update(advance=done)


@contextmanager
def _show_steps(what: str) -> Iterator[Callable[[int, int, str], None]]:
    """A bar of steps: told how many are done, of how many, and what is next."""
    with _show_bar(what, "models") as update:
        yield lambda done, total, text: update(completed=done, total=total, description=text)


@contextmanager
def _show_bar(what: str, unit: str) -> Iterator[Callable[..., None]]:
    """A bar on stderr while the block runs, if it runs for more than a second and someone is looking."""
    if not sys.stderr.isatty():
        yield lambda **changes: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    count = TextColumn(f"{{task.completed:,.0f}} {unit}" if unit else "")
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        count,
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = progress.add_task(what, total=None)
    timer = threading.Timer(_PATIENCE, progress.start)
    timer.start()
    try:
        yield lambda **changes: progress.update(task, **changes)
    finally:
        timer.cancel()
        timer.join()
        progress.stop()
