"""What each verb can be asked for: one frozen dataclass each, and every option declared in one field of it.

Owns name, type, default, help and bounds of an option. Flags of the command line, keys of `derand.toml` and arguments
of jobs are made from these fields. Must not import anything heavy: `--help` reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from derand._core.files import PathLike
    from derand.noise import Noise
    from derand.threat import Threat

CLASSES = "classes"
NUMBER = "number"
"""What a target can hold."""


@dataclass(frozen=True, slots=True)
class Option:
    """What is said of a setting beside its name, type and default.

    Attributes
    ----------
    help : str
        One sentence.
    kind : str
        How it is written: "text", "texts", "number", "numbers", "truth", "whole", "count", "file" (to be read), "name"
        (a file to be written), "noise" or "compare".
    flag : str or None
        Of the command line; None where there is none.
    key : str or None
        Of `derand.toml`, in the section of the verb; None where there is none.
    task : str or None
        CLASSES or NUMBER, where it is for such models alone.
    metavar : str or None
        What stands for the value in the help.
    shown : str or None
        What the help says of the default; None is the default itself, where there is one.
    least : float or None
        The smallest value.
    """

    help: str
    kind: str = "text"
    flag: str | None = None
    key: str | None = None
    task: str | None = None
    metavar: str | None = None
    shown: str | None = None
    least: float | None = None


_BY_NAME = ""


def _option(
    help: str,
    kind: str = "text",
    *,
    default: Any = None,
    flag: str | None = _BY_NAME,
    key: str | None = _BY_NAME,
    **more: Any,
) -> Any:
    """A field with its option; flag and key are called as the field is unless they are named, or None."""
    return field(default=default, metadata={"option": Option(help, kind, flag, key, **more)})


def list_options(settings: type) -> Iterator[tuple[Field[Any], Option]]:
    """The fields of a settings class that users may set, with flags and keys filled in."""
    for one in fields(settings):
        found: Option | None = one.metadata.get("option")
        if found is not None:
            flag = f"--{one.name.replace('_', '-')}" if found.flag == _BY_NAME else found.flag
            key = one.name if found.key == _BY_NAME else found.key
            yield one, Option(found.help, found.kind, flag, key, found.task, found.metavar, found.shown, found.least)


def list_keys(settings: type) -> dict[str, Option]:
    """The keys of a section of `derand.toml`."""
    return {option.key: option for _, option in list_options(settings) if option.key is not None}


def read_keys(settings: type, section: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a section of `derand.toml` sets."""
    names = {option.key: one.name for one, option in list_options(settings)}
    return {names[key]: value for key, value in section.items() if key in names}


def find_flag(settings: type, name: str) -> str:
    """How a setting is written on the command line."""
    return next(option.flag or name for one, option in list_options(settings) if one.name == name)


def list_of_other_task(settings: object, task: str) -> list[str]:
    """The fields that are set and are for models of the other task alone."""
    found = [(one, option) for one, option in list_options(type(settings)) if option.task not in (None, task)]
    return [one.name for one, _ in found if getattr(settings, one.name) != one.default]


@dataclass(frozen=True, slots=True)
class ThreatFlags:
    """Fields of Threat as texts of the command line: what differs from the threat that a model was trained for."""

    norm: str | None = _option(
        "Norm of the ball: 0, 1, 2, inf, or none: limits alone say what may change; auto: the model's own.",
        shown="auto",
    )
    limits: Sequence[str] = _option(
        "By how much a number may change: 5%, 500, or down:up; the column * is all others. Repeatable.",
        "texts",
        default=(),
        flag="--limit",
        metavar="COLUMN=VALUE",
    )
    domain: Sequence[str] = _option(
        "Between which ends a number stays. Repeatable.", "texts", default=(), metavar="COLUMN=LOW:HIGH"
    )
    steps: Sequence[str] = _option(
        "In which steps a number moves. Repeatable.", "texts", default=(), flag="--step", metavar="COLUMN=NUMBER"
    )
    whole: bool = _option(
        "Columns that held whole numbers alone in training stay whole, and 0/1 stays 0/1.", "truth", default=False
    )
    frozen: Sequence[str] = _option(
        "A column that does not change. Repeatable.", "texts", default=(), flag="--freeze", metavar="COLUMN"
    )
    units: Sequence[str] = _option(
        "What counts as a change of 1; other columns keep the model's units. Repeatable.",
        "texts",
        default=(),
        flag="--unit",
        metavar="COLUMN=NUMBER",
    )
    l0: int | None = _option(
        "How many categorical columns may change at the same time.", "whole", shown="what the model was trained for"
    )
    missing: int | None = _option(
        "How many numbers may go missing or, where they are missing, appear as anything.",
        "whole",
        metavar="K",
        shown="none",
    )

    def list_given(self) -> list[str]:
        """The flags that are given."""
        return [str(option.flag) for one, option in list_options(type(self)) if getattr(self, one.name) != one.default]

    def parse(self) -> dict[str, Any]:
        """The same as fields of Threat."""
        from derand.threat_text import parse_changes

        return parse_changes(**{one.name: getattr(self, one.name) for one in fields(self)})


@dataclass(frozen=True, slots=True)
class CertifySettings:
    """What `certify_file` is asked for.

    Attributes
    ----------
    target : str or None
        Column with the true labels or numbers.
    radii : sequence of float, or None
        Where certified accuracy is measured, with a target; None is 0, 0.25, 0.5 and 1. For classes.
    radius : float or None
        Of intervals; None is what the regressor was trained for. For numbers.
    tolerance : float or None
        By how much a value may move, in units of the target; then each row's radius is found. For numbers.
    rule, proof, noise
        As for `certify` of the estimator.
    changes : mapping of str to value
        Fields of Threat that differ from those of the estimator's `default_threat`, such as {"norm": inf}; not beside
        `threat`.
    l0 : int or None
        How many categorical features may change at the same time. None is that of the estimator's `default_threat`:
        what it was trained for, or 0.
    threat : Threat, path-like or None
        What may change, instead of `l0`, with columns by their names in the file; or a TOML file that says it. None
        is the estimator's `default_threat`.
    witness : path-like or None
        .csv or .parquet, for a threat without norm: one line per row that flips, with row, label, new_label and the
        classifier's columns, changed so that they get the new label. For classes.
    safe_csv : bool
        Put an apostrophe before text and column names that a spreadsheet would take for formulas; for .csv alone.
    identity : str or None
        A column of the data that says which row is which: it is copied, and stands first in what is written. It need
        not be one of the model.
    keep : sequence of str
        Further columns of the data that are copied; they stand last.
    n_jobs : int or None
        Threads; None is the estimator's own, and without one all cores.
    """

    target: str | None = _option("Column with the true labels or numbers, to measure errors.", key=None)
    radii: Sequence[float] | None = _option(
        "For classes: radii at which certified accuracy is measured.", "numbers", task=CLASSES, shown="0,0.25,0.5,1"
    )
    radius: float | None = _option(
        "For numbers: how large a change intervals cover.", "number", task=NUMBER, shown="what it was trained for"
    )
    tolerance: float | None = _option(
        "For numbers: write the radius within which a value moves by no more than this.", "number", task=NUMBER
    )
    rule: str | None = _option(
        "How the label is found: vote (of noisy copies) or mean (of their scores).", shown="the model's own"
    )
    proof: str = _option("What may prove a radius: best, or paper for the paper's proof alone.", default="best")
    noise: Noise | str | float | None = _option(
        "Noise to certify under, such as gaussian:0.25, or 0.25 alone; none: the model as deployed, with --rule mean.",
        "noise",
        shown="the model's own",
    )
    changes: Mapping[str, Any] = field(default_factory=dict)
    l0: int | None = None
    threat: Threat | PathLike | None = _option(
        "What may change, in a file instead of --norm, --limit, ..., --l0 and --missing.",
        "file",
        key=None,
        metavar="FILE.toml",
    )
    witness: PathLike | None = _option(
        "With --norm none: where to write the rows that flip, with values that flip them.", "name", task=CLASSES
    )
    safe_csv: bool = _option(
        "For spreadsheets: put an apostrophe before text and names of columns that look like formulas.",
        "truth",
        default=False,
    )
    identity: str | None = _option(
        "A column that says which row is which: it is copied, and stands first. It need not be the model's.",
        flag="--id",
        key="id",
        metavar="COLUMN",
    )
    keep: Sequence[str] = _option(
        "Another column to copy into what is written. Repeatable.", "texts", default=(), metavar="COLUMN"
    )
    n_jobs: int | None = None
