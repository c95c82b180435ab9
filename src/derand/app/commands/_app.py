"""What all commands share: the application, errors as one line, the console, progress, and how results are printed.

Owns no command. Must not import a heavy library when it is loaded: `--help` and `--version` answer at once. Programs
outside the package (`python -m experiments`) use the same helpers, which `derand.app.commands` exports.
"""

from __future__ import annotations

import errno
import functools
import glob
import json
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, Protocol

import typer
from typer.core import TyperCommand

from derand._core.files import require_writable
from derand._core.later import MissingLibraryError
from derand._core.text import make_printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.table import Table

    from derand.metrics import ShareAtRadius

Parameters = ParamSpec("Parameters")
PATIENCE = 1.0
"""Seconds of work before a progress bar appears."""
_PRINTING_FAULTS = (errno.EPIPE, errno.EBADF, errno.EIO, errno.ENOSPC, errno.EFBIG)
"""Errors of the system when something is printed."""
_INTERRUPTED = 128 + signal.SIGINT
_LARGEST_WHOLE = 2**31 - 1
"""What an option that is a whole number may be."""
_RIGHT = ("radius", "failure", "share", "row")
"""Columns of printed tables that hold numbers."""

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for other programs.")]


def make_app(name: str, about: str) -> typer.Typer:
    """An application without commands, in the manner of `derand`; `about` is the first line of its help."""
    return typer.Typer(
        name=name,
        help=about,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


app = make_app("derand", "Deterministic, provable robustness for tabular models.")


class _TerminatedError(BaseException):
    """SIGTERM came; like Ctrl-C it is no error of the program, and everything that is open is closed on its way."""


class InterruptedWorkError(Exception):
    """Ctrl-C came, and there is more to say of it than that."""


def run_app(application: typer.Typer) -> None:
    """Run an application and leave the process; wrong usage gives one line on stderr and exit code 2.

    SIGTERM ends it as Ctrl-C does: what was begun is removed, and the exit code is 143. Where nothing can be printed,
    because the disk is full or stdout is closed, that is one line on stderr and exit code 2, too.
    """
    _open_closed_streams()
    usual, warnings.formatwarning = warnings.formatwarning, _format_warning
    try:
        with _raise_on_sigterm():
            code = _find_exit_code(application)
    except _TerminatedError:
        complain("stopped by SIGTERM.")
        code = 128 + signal.SIGTERM
    finally:
        warnings.formatwarning = usual
    sys.exit(code)


def _find_exit_code(application: typer.Typer) -> int:
    """Run an application, and say how it ended."""
    try:
        code = application(standalone_mode=False)
        sys.stdout.flush()
    except InterruptedWorkError as error:
        complain(str(error))
        return _INTERRUPTED
    except typer.Abort:
        code = _INTERRUPTED
    except (BrokenPipeError, SystemExit):  # whoever read our output has had enough; typer leaves by itself then
        _discard_stdout()
        code = 0
    except Exception as error:
        explain = getattr(error, "format_message", None)  # what typer raises for wrong usage
        if explain is not None:
            return complain(explain()) if explain() else 0  # empty: no command was given, and help was printed
        fault = _explain_printing(error)
        if fault is None:
            raise
        _discard_stdout()
        code = complain(f"Cannot print to stdout: {fault}.")
    if code == _INTERRUPTED:
        complain("stopped by Ctrl-C.")
    return code or 0


def _explain_printing(error: Exception) -> str | None:
    """What went wrong with stdout, where an error is one of writing to it: errors of files have a name."""
    if isinstance(error, OSError) and error.filename is None and error.errno in _PRINTING_FAULTS:
        return os.strerror(error.errno)
    return None


@contextmanager
def _raise_on_sigterm() -> Iterator[None]:
    """Let SIGTERM raise an error in this block; in a thread, or where somebody handles it already, nothing changes."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one does not disturb the tidying up
        raise _TerminatedError

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _open_closed_streams() -> None:
    """Fill the numbers of streams that are closed, lest a file that is opened later gets one and is written into.

    To write to such a stdout is then an error, as it should be.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                null = os.open(os.devnull, os.O_RDONLY if name == "stdout" else os.O_RDWR)
                if null != number:
                    os.dup2(null, number)
                    os.close(null)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def _discard_stdout() -> None:
    """Let what is still to be printed go nowhere: Python would complain when it leaves."""
    with suppress(OSError, ValueError):  # not a file of the system
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _format_warning(message: Warning | str, *place: object, **line: object) -> str:
    """A warning as one line, without the place in the code that gave it."""
    return f"Warning: {make_printable(' '.join(str(message).split()))}\n"


def complain(message: str) -> int:
    """One line on stderr; the exit code for bad input."""
    with suppress(OSError):  # there is nobody left to be told
        sys.stderr.write(f"Error: {make_printable(' '.join(message.split()))}\n")
        sys.stderr.flush()
    return 2


def clear_errors(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Turn the errors that bad input causes in a command into one line and exit code 2."""

    @functools.wraps(command)
    def run(*arguments: Parameters.args, **options: Parameters.kwargs) -> None:
        try:
            _require_inputs(options)
            command(*arguments, **options)
        except (ValueError, OSError, MissingLibraryError) as error:
            if _explain_printing(error) is not None:
                raise  # the input is not bad: `run_app` tells what is
            code = complain(str(error))
            _close_readers(error)
            raise typer.Exit(code) from None

    return run


def _close_readers(error: BaseException | None) -> None:
    """Let go of what the frames of an error hold: a file that is still read ahead aborts a process that ends."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


_INPUTS = {
    "model": "The model file {} does not exist: check its name and folder.",
    "data": "{} does not exist.",
    "certified": "{} does not exist: name a table that `derand certify` wrote.",
}
"""What a command reads, by the name of its parameter, and what is said where that is not there."""


def _require_inputs(options: Mapping[str, object]) -> None:
    """Refuse files that are not there before a library is loaded; streams and patterns are left to who reads them."""
    for name, message in _INPUTS.items():
        path = options.get(name)
        if isinstance(path, Path) and str(path) != "-" and not glob.has_magic(str(path)) and not path.exists():
            raise FileNotFoundError(message.format(path))
    output = options.get("output")
    if isinstance(output, Path) and output.suffix and not output.parent.exists():  # commands make their folders
        require_writable(output)


def add_command(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Make a function a command of `derand` of the same name: options from its parameters, help from its docstring.

    An underscore at the end of its name, where the name alone is a word of Python, is left out; others become "-".
    """
    name = command.__name__.rstrip("_").replace("_", "-")
    return app.command(name, cls=_Command)(clear_errors(command))


class _Command(TyperCommand):
    """A command whose help lists registries: `{NOISES}` and the like are filled in when it is asked for.

    Whole numbers of all its options have a size that can be computed with.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        rest: list[str] = super().parse_args(ctx, args)
        for parameter in self.params:
            value = ctx.params.get(parameter.name)
            if isinstance(value, int) and abs(value) > _LARGEST_WHOLE:
                hint = f"'{max(parameter.opts, key=len)}'"
                raise typer.BadParameter(f"it must be a whole number up to {_LARGEST_WHOLE}.", ctx, param_hint=hint)
        return rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for parameter in self.params:
            text = getattr(parameter, "help", None) or ""
            for name, describe in _LISTS.items():
                if name in text:
                    text = text.replace(name, describe())
                    parameter.help = text  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def _list_noises() -> str:
    from derand.noise import NOISES

    return ", ".join(f"{name} (l{noise.norm} balls)" for name, noise in NOISES.items())


def _list_trainers() -> str:
    from derand.estimators import TRAINERS

    return ", ".join(TRAINERS)


def _list_regressors() -> str:
    from derand.estimators import REGRESSORS

    return ", ".join(REGRESSORS)


def _name_default_model() -> str:
    from derand.app.jobs import choose_model

    return choose_model()


_LISTS: dict[str, Callable[[], str]] = {
    "{NOISES}": _list_noises,
    "{TRAINERS}": _list_trainers,
    "{REGRESSORS}": _list_regressors,
    "{DEFAULT_MODEL}": _name_default_model,
}


def make_console() -> Console:
    """The console for results: colours on a terminal, long lines unbroken in a pipe.

    Names and labels come from files: nothing in them controls the terminal, whatever is printed.
    """
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    console.push_render_hook(_PrintableHook())  # type: ignore[arg-type]
    return console


class _PrintableHook:
    """Lets a console print text alone: `make_printable` for everything but what it adds itself, such as colours."""

    def process_renderables(self, renderables: list[RenderableType]) -> list[RenderableType]:
        return [_Printable(one) for one in renderables]


class _Printable:
    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        from rich.segment import Segment

        for text, style, control in console.render(self._renderable, options):
            yield Segment(text if control else make_printable(text), style, control)


def make_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = _RIGHT
) -> Table:
    """A table to be printed on a console; columns in `right` stand to the right, cells are printed as they are."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(make_printable(title)), box=box.SIMPLE, title_justify="left")
    for column in columns:
        table.add_column(Text(make_printable(column)), justify="right" if column in right else "left")
    for row in rows:
        table.add_row(*(Text(make_printable(cell)) for cell in row))
    return table


def make_accuracy_table(
    accuracy: float, shares: Sequence[ShareAtRadius], constant: tuple[str, float] | None = None
) -> Table:
    """Accuracy and certified accuracy; radii exactly as they were asked for, shares cut.

    `constant`: the most frequent label and its share, which stands beside every other: what a constant answer gets.
    """
    from derand._core.text import format_exactly, format_percent

    rows = [["unchanged", format_percent(accuracy)]]
    named = [format_exactly(entry["radius"]) if entry["radius"] else "above 0" for entry in shares]
    rows += [[name, format_percent(entry["share"])] for name, entry in zip(named, shares, strict=True)]
    columns = ["radius", "share"]
    if constant is not None:
        columns.append(f"always {constant[0]}")
        rows = [[*row, format_percent(constant[1])] for row in rows]
    return make_table("Certified accuracy", columns, rows, right=columns)


def print_facts(console: Console, facts: Mapping[str, str]) -> None:
    """Print facts, one "name: value" per line."""
    for name, value in facts.items():
        line = f"{name}: {value}".replace("\n", "\\n")  # a line end in a name begins no fact of its own
        console.print(line, markup=False)


def print_result(result: object, as_json: bool, show: Callable[[Any], None]) -> None:
    """Print the result of a command, as JSON or as its own function shows it."""
    (print_json if as_json else show)(result)


def print_json(value: object) -> None:
    """Print a result as one JSON document, infinite numbers as text."""
    from derand._core.text import as_plain_json

    typer.echo(json.dumps(as_plain_json(value), indent=2, allow_nan=False))


@contextmanager
def show_progress(what: str, unit: str = "") -> Iterator[Callable[[int], None]]:
    """A bar on stderr that counts up, without a known end; it is told how many more are done."""
    with _show_bar(what, unit) as update:
        yield lambda done: update(advance=done, description=what)


@contextmanager
def show_steps(what: str, unit: str = "") -> Iterator[Callable[[int, int, str], None]]:
    """A bar on stderr of a known number of steps; it is told how many are done, of how many, and what is next."""
    with _show_bar(what, unit) as update:
        yield lambda done, total, text: update(completed=done, total=total, description=text)


class _Update(Protocol):
    """How a bar is told of progress."""

    def __call__(
        self,
        *,
        advance: float | None = None,
        completed: float | None = None,
        total: float | None = None,
        description: str | None = None,
    ) -> None: ...


@contextmanager
def _show_bar(what: str, unit: str) -> Iterator[_Update]:
    """A bar on stderr while the block runs, if it runs for more than a second and someone is looking.

    Else a line there says that functions are compiled, which may take minutes.
    """
    if not sys.stderr.isatty():
        from derand._core.progress import hear_announcements, print_line

        with hear_announcements(print_line):
            yield lambda **changes: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    count = TextColumn(f"{{task.completed:,.0f}} {unit}" if unit else "")
    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        count,
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = progress.add_task(make_printable(what), total=None)

    def update(description: str | None = None, **changes: Any) -> None:
        shown = None if description is None else make_printable(description)
        progress.update(task, description=shown, **changes)

    timer = threading.Timer(PATIENCE, progress.start)
    timer.start()
    try:
        from derand._core.progress import listen

        with listen(update):
            yield update
    finally:
        timer.cancel()
        timer.join()
        progress.stop()
