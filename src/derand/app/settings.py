"""What each verb can be asked for: one frozen dataclass each, and every option declared in one field of it.

Owns name, type, default, help, unit and bounds of an option. Flags of the command line, keys of `derand.toml` and the
comments of `derand init`, and arguments of jobs are made from these fields. How a value is written, `values` knows.
Must not import anything heavy: `--help` reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from derand._core.files import PathLike
    from derand.noise import Noise
    from derand.threat import Threat

CLASSES = "classes"
NUMBER = "number"
TASKS = (CLASSES, NUMBER)
"""What a target can hold."""
OWN = "auto"
"""The scaling that a trainer has by itself: "standard" for those that count in raw numbers unless told otherwise."""
SCALINGS = ("standard", "range", "robust", "none")
"""Those of `derand.train`, which is slow to load, and none."""

Settings = TypeVar("Settings")


@dataclass(frozen=True, slots=True)
class Option:
    """What is said of a setting beside its name, type and default.

    Attributes
    ----------
    help : str
        One sentence.
    kind : str
        How it is written: a key of `derand.app.values.KINDS`.
    flag : str or None
        Of the command line; None where there is none.
    key : str or None
        Of `derand.toml`; None where there is none.
    section : str or None
        Of `derand.toml`, where it is not that of the verb.
    comment : str or None
        What `derand init` writes behind the key.
    task : str or None
        CLASSES or NUMBER, where it is for such models alone.
    metavar : str or None
        What stands for the value in the help.
    shown : str or None
        What the help says of the default; None is the default itself, where there is one.
    unit : str or None
        What a number counts in, where it is no plain count.
    least : float or None
        The smallest value.
    positive : bool
        Whether a number must be above 0.
    choices : sequence of str, or callable
        What it may be; a callable, where a registry says it, which is asked when a value is given.
    """

    help: str
    kind: str = "text"
    flag: str | None = None
    key: str | None = None
    section: str | None = None
    comment: str | None = None
    task: str | None = None
    metavar: str | None = None
    shown: str | None = None
    unit: str | None = None
    least: float | None = None
    positive: bool = False
    choices: Sequence[str] | Callable[[], Sequence[str]] = ()


_BY_NAME = ""


def _option(
    help: str | Option,
    kind: str = "text",
    *,
    default: object = None,
    flag: str | None = _BY_NAME,
    key: str | None = _BY_NAME,
    **more: Any,
) -> Any:
    """A field with its option; flag and key are called as the field is unless they are named, or None."""
    found = Option(help, kind, flag, key, **more) if isinstance(help, str) else replace(help, flag=flag, key=key)
    return field(default=default, metadata={"option": found})


def _texts(help: str, metavar: str = "COLUMN", **more: Any) -> Any:
    """A field of an option that is repeated, of columns unless something else is said."""
    return _option(help, "texts", default=(), metavar=metavar, **more)


def list_options(settings: type) -> Iterator[tuple[Field[Any], Option]]:
    """The fields of a settings class that users may set, with flags, keys and sections filled in.

    `SECTION` of the class is the verb's section of `derand.toml`; where that is empty, it has none, and no keys.
    """
    for one in fields(settings):
        found: Option | None = one.metadata.get("option")
        if found is not None:
            flag = f"--{one.name.replace('_', '-')}" if found.flag == _BY_NAME else found.flag
            key = one.name if found.key == _BY_NAME else found.key
            key = key if settings.SECTION else None  # type: ignore[attr-defined]
            yield one, replace(found, flag=flag, key=key, section=found.section or settings.SECTION)  # type: ignore[attr-defined]


def list_keys(settings: type, section: str) -> dict[str, Option]:
    """The keys of a section of `derand.toml` that set these settings."""
    found = [option for _, option in list_options(settings) if option.section == section]
    return {option.key: option for option in found if option.key is not None}


def read_keys(settings: type, sections: Mapping[str, Mapping[str, object]]) -> dict[str, Any]:
    """The fields that a `derand.toml` sets."""
    named = {one.name: (option.section or "", option.key) for one, option in list_options(settings)}
    return {
        name: sections[at][key] for name, (at, key) in named.items() if key is not None and key in sections.get(at, {})
    }


def find_flag(settings: type, name: str) -> str:
    """How a setting is written on the command line."""
    return next(option.flag or name for one, option in list_options(settings) if one.name == name)


def list_given(settings: object) -> list[str]:
    """The fields that are not what they are by default."""
    return [one.name for one, _ in list_options(type(settings)) if getattr(settings, one.name) != one.default]


def list_of_other_task(settings: object, task: str) -> list[str]:
    """The fields that are set and are for models of the other task alone."""
    others = [one.name for one, option in list_options(type(settings)) if option.task not in (None, task)]
    return [name for name in list_given(settings) if name in others]


def fill_settings(kind: type[Settings], given: Settings | None, options: Mapping[str, object]) -> Settings:
    """Settings as they were given, or those by default, with some fields replaced."""
    return replace(kind() if given is None else given, **options)  # type: ignore[type-var]


def _list_rules() -> Sequence[str]:
    from derand.certificates import RULES

    return tuple(RULES)


def _list_models() -> Sequence[str]:
    from derand.estimators import REGRESSORS, TRAINERS

    return tuple(dict.fromkeys([*REGRESSORS, *TRAINERS]))


def _list_classifiers() -> Sequence[str]:
    from derand.estimators import TRAINERS

    return tuple(TRAINERS)


_TARGET = Option("Column with the true labels or numbers, to measure errors.")
_TASK = Option(
    "What the target holds: classes, or a number to be predicted.",
    section="data",
    shown="number where it holds fractions or more than 20 whole numbers, else classes",
    choices=TASKS,
)
_CATEGORICAL = Option(
    "A column of numbers that are categories. Repeatable.",
    "texts",
    section="data",
    comment="columns of numbers that are categories",
    metavar="COLUMN",
)
_IGNORED = Option(
    "A column to leave out. Repeatable.", "texts", section="data", comment="columns to leave out", metavar="COLUMN"
)
_SCALING = Option(
    "Count noise and radii in deviations (standard), ranges (range) or interquartile ranges (robust) of each column, "
    "or none.",
    shown="robust for additive, else standard",
    choices=SCALINGS,
)
_CLASS_WEIGHT = Option('"balanced" gives all classes the same weight.', comment="all classes count the same")
_DECISION_THRESHOLD = Option(
    "From which probability of the second class on it is the answer; the score's threshold is moved.",
    "share",
    shown="0.5, or where class weights put it",
)
_COST = Option(
    "The same by what mistakes cost; a positive is the second class.",
    "costs",
    comment="what mistakes cost",
    metavar="false_negative=5,false_positive=1",
)
_WHOLE = Option("Columns of whole numbers in training stay whole, and 0/1 stays 0/1.", "truth")
_RULE = Option(
    "How the answer is found: vote (of noisy copies) or mean (of their scores).",
    shown="the model's own",
    choices=_list_rules,
)
_IDENTITY = Option(
    "A column that says which row is which: it is copied, and stands first. It need not be the model's.",
    comment="column that says which row is which, copied beside the results",
    metavar="COLUMN",
)
_DATES = Option(
    "A column of dates to learn from, as days; later files are read in the same way. Repeatable.",
    "texts",
    section="data",
    comment="dates to learn from, as days since 1970-01-01",
    metavar="COLUMN",
)
_L0 = Option("How many categorical columns may change as well.", "whole", shown="0")
_FROZEN = Option("A column that does not change. Repeatable.", "texts", metavar="COLUMN")
_THREAT_FILE = Option("What may change, in a file instead of --norm, --l0 and --frozen.", "file", metavar="FILE.toml")
_OF_SCALING = "units of each column, as scaling says"
_OF_TARGET = "units of the target"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings:
    """What `train_file` is asked for; what is None is the trainer's own, what a trainer does not have is refused.

    Attributes
    ----------
    task : {"classes", "number"} or None
        What the target holds. None guesses: text and up to 20 different whole numbers are classes, other numbers are to
        be predicted.
    model : str or None
        A trainer of `derand.estimators.TRAINERS`: "additive" (None), "stumps", "tree-boost" or "ada-boost"; for a
        number one of `REGRESSORS`: "additive" or "stumps".
    threat : Threat, path-like or None
        What may change, instead of `norm`, `l0` and `frozen`, with columns by their names in the file; or a TOML file
        that says it.
    scaling : str or None
        "auto" is the trainer's own, and "standard" for those that have none; None and "none" are raw numbers.
    categorical, ignored, numerical, dates : collection of str
        Columns to be taken as categorical though they hold numbers, to be left out, to be used though they look like an
        identifier, and dates, which become days since 1970-01-01: the model reads them so in later files.
    radius, norm, l0, frozen, monotone, groups, regularization, min_rows_per_category, noise, class_weight
        As for the estimators, which own the defaults.
    decision_threshold, cost, rule
        As for the estimators.
    """

    SECTION: ClassVar[str] = "model"

    task: str | None = _option(_TASK)
    model: str | None = _option(
        "How it is trained: one of {TRAINERS}; {DEFAULT_MODEL} if not given. For numbers: {REGRESSORS}.",
        key="trainer",
        choices=_list_models,
    )
    radius: float | None = _option(
        "How large a change to train against; 0 is a plain model.",
        "number",
        comment="how large a change to train against, in interquartile ranges; 0: none",
        shown="0",
        unit=_OF_SCALING,
    )
    norm: float | None = _option(
        "How changes of numbers are measured: 1, 2 or inf.", "norm", key=None, shown="2", choices=("1", "2", "inf")
    )
    l0: int | None = _option(_L0, key=None)
    frozen: Sequence[str] = _option(_FROZEN, default=(), key=None)
    threat: Threat | PathLike | None = _option(_THREAT_FILE, key=None)
    monotone: Mapping[str, str] | None = _option(
        "A number whose function only rises (increasing) or falls (decreasing). Repeatable.",
        "directions",
        comment="functions that only rise, or fall (decreasing)",
        metavar="COLUMN=DIRECTION",
    )
    groups: Sequence[Sequence[str]] | str | None = _option(
        'Columns that interact: "auto" looks for them, "a,b;c,d" names them, "patches:3" are those of an image.',
        "groups",
        metavar="auto|patches:3|A,B;C,D",
    )
    regularization: float | None = _option(
        "How smooth the functions are: a number above 0.",
        "number_or_cv",
        comment="how smooth its functions are: a number, or by cross-validation",
        shown="by cross-validation",
    )
    min_rows_per_category: int | None = _option(
        "Categories of fewer rows get the value of one that was never seen.", "whole", metavar="ROWS"
    )
    noise: Noise | str | float | None = _option(
        "Kind and scale, such as gaussian:0.25; kinds are {NOISES}. For additive also none.",
        "noise",
        shown="half of the radius for additive, none for it in norm inf, else gaussian:0.25",
        unit=_OF_SCALING,
    )
    scaling: str | None = _option(_SCALING, default=OWN)
    class_weight: str | None = _option(_CLASS_WEIGHT)
    decision_threshold: float | None = _option(_DECISION_THRESHOLD)
    cost: Mapping[str, float] | None = _option(_COST)
    rule: str | None = _option(replace(_RULE, shown="mean for additive, else vote"))
    categorical: Sequence[str] = _option(_CATEGORICAL, default=())
    ignored: Sequence[str] = _option(_IGNORED, default=())
    numerical: Sequence[str] = _texts(
        "A column of numbers to use though it looks like an identifier. Repeatable.", section="data"
    )
    dates: Sequence[str] = _option(_DATES, default=())

    def list_parameters(self) -> dict[str, Any]:
        """The parameters of the estimator that are given."""
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in OF_TABLE}
        return {name: value for name, value in given.items() if value not in (None, (), [], {})}


OF_TABLE = ("task", "model", "scaling", "categorical", "ignored", "numerical", "dates")
"""Fields of TrainSettings that are no parameters of estimators, or are set by what a table holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneSettings:
    """What `tune_file` is asked for; what is None is the trainer's own.

    Attributes
    ----------
    model : str or None
        A trainer of `derand.estimators.TRAINERS`; None is `choose_model()`.
    norm : {0, 1, 2, inf} or None
        Of the ball. None is that of the trainer, or of its noise.
    l0, frozen, threat
        What may change beside the ball, as for TrainSettings; `threat` has a ball and stands for `norm`, too.
    radii : sequence of float
        Where certified accuracy is measured; also the training radii that are tried, beside 0, of trainers that have
        one. Nothing is the usual ones.
    noise, rule
        As for the classifiers. Magnitudes are tried around that of the noise.
    balanced, accuracy_loss
        As for `derand.tune`.
    folds : int
    scaling, class_weight, categorical, ignored, dates
        As for TrainSettings.
    """

    SECTION: ClassVar[str] = ""

    model: str | None = _option(
        "How it is trained: one of {TRAINERS}; {DEFAULT_MODEL} if not given.", choices=_list_classifiers
    )
    norm: float | None = _option(
        "Norm of the ball: 0, 1, 2 or inf.", "norm", shown="the model's own", choices=("0", "1", "2", "inf")
    )
    l0: int | None = _option(_L0)
    frozen: Sequence[str] = _option(_FROZEN, default=())
    threat: Threat | PathLike | None = _option(_THREAT_FILE)
    dates: Sequence[str] = _option(_DATES, default=())
    radii: Sequence[float] = _option(
        "Where certified accuracy is measured, and trained for where the model is, separated by commas.",
        "numbers",
        default=(),
        metavar="RADIUS,RADIUS",
        unit=_OF_SCALING,
        positive=True,
    )
    noise: str | None = _option(
        "Magnitudes are tried around this one; kinds are {NOISES}.", "noise", shown="the model's own", unit=_OF_SCALING
    )
    scaling: str | None = _option(_SCALING, default=OWN)
    class_weight: str | None = _option(_CLASS_WEIGHT)
    rule: str | None = _option(_RULE)
    balanced: bool = _option("Recommend by the mean of all classes.", "truth", default=False)
    accuracy_loss: float = _option(
        "How much natural accuracy it may cost; 0.01 is one point.", "number", default=0.01, least=0
    )
    folds: int = _option("Folds of the cross-validation.", "whole", default=5, least=2)
    categorical: Sequence[str] = _option(_CATEGORICAL, default=())
    ignored: Sequence[str] = _option(_IGNORED, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSettings:
    """What `import_file` is asked for.

    Attributes
    ----------
    classes : sequence of str
        Labels in the order of the classes, where the file has none but 0, 1, ...
    data : path-like or None
        Rows such as those it was trained on, CSV or Parquet: names of columns where the file has none, units for
        `scaling`, and more rows on which raw scores are compared.
    target : str or None
        Column of the rows with the true labels or numbers, to measure errors; it is no feature.
    scaling : {"standard", "range", "robust", "none"} or None
        What counts as a change of 1 of each column, measured on the rows; None and "none" are 1 in its own units.
    noise : Noise, str or None
        What it is smoothed by; None or "none" for the model as deployed.
    rule : {"mean", "vote"} or None
        How it answers; None is "mean".
    decision_threshold, cost
        As for `derand.from_model`.
    trust_pickle : bool
        Whether a pickle may be opened, which runs whatever code it holds.
    trusted : collection of str
        Full names of types that a skops file may hold beside those that are known to be harmless.
    """

    SECTION: ClassVar[str] = ""

    classes: Sequence[str] = _option(
        "Labels in the order of the classes, where the file has none.",
        "labels",
        default=(),
        metavar="NO,YES",
        shown="0,1,...",
    )
    data: PathLike | None = _option(
        "Rows such as those it was trained on, CSV or Parquet: they name columns where the file does not, and scores "
        "are compared on them.",
        "file",
    )
    target: str | None = _option("Column of these rows with the labels or numbers: it is no feature.")
    scaling: str | None = _option(
        "Count noise and radii in deviations (standard), ranges (range) or interquartile ranges (robust) of each "
        "column of these rows, or none.",
        shown="none",
        choices=SCALINGS,
    )
    noise: Noise | str | float | None = _option(
        "Smooth it: kind and scale, such as gaussian:0.25; kinds are {NOISES}. none: the model as deployed.",
        "noise",
        shown="none",
        unit=_OF_SCALING,
    )
    rule: str | None = _option(
        "How it answers: vote (of noisy copies) or mean (of their scores; without noise its own answer).",
        shown="mean",
        choices=_list_rules,
    )
    decision_threshold: float | None = _option(replace(_DECISION_THRESHOLD, shown="that of the model"))
    cost: Mapping[str, float] | None = _option(_COST)
    trust_pickle: bool = _option(
        "Open a pickle, which runs whatever code it holds: only if you trust it.", "truth", default=False
    )
    trusted: Sequence[str] = _texts("A type that a skops file may hold besides known ones. Repeatable.", "TYPE")


@dataclass(frozen=True, slots=True)
class ThreatFlags:
    """Fields of Threat as texts of the command line: what differs from the threat that a model was trained for."""

    SECTION: ClassVar[str] = ""

    norm: str | None = _option(
        "Norm of the ball: 0, 1, 2, inf, or none: only limits say what may change; auto: the model's own.",
        shown="auto",
        choices=("auto", "0", "1", "2", "inf", "none"),
    )
    limits: Sequence[str] = _texts(
        "By how much a number may change: 5%, 500, or down:up; the column * is all others. Repeatable.", "COLUMN=VALUE"
    )
    domain: Sequence[str] = _texts("Between which ends a number stays. Repeatable.", "COLUMN=LOW:HIGH")
    steps: Sequence[str] = _texts("In which steps a number moves. Repeatable.", "COLUMN=NUMBER")
    whole: bool = _option(_WHOLE, default=False)
    frozen: Sequence[str] = _texts("A column that does not change. Repeatable.")
    units: Sequence[str] = _texts(
        "What counts as a change of 1; other columns keep the model's units. Repeatable.", "COLUMN=NUMBER"
    )
    linked: Sequence[str] = _texts(
        "A number that follows from two others, such as debt_ratio=debt/income or left=due-paid; +-0.005 behind it "
        "where it is rounded. Without noise and norm. Repeatable.",
        "COLUMN=FORMULA",
    )
    l0: int | None = _option(
        "How many categorical columns may change at the same time.",
        "whole",
        shown="what the model was trained for",
    )
    unseen: bool | None = _option(
        "Whether a category may also become a value that training did not see.",
        "either",
        flag="--unseen/--no-unseen",
        shown="what the model was trained for, else that it may",
    )
    missing: int | None = _option(
        "How many numbers may go missing or, where they are missing, appear as anything.",
        "whole",
        metavar="K",
        shown="none",
    )

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
    rule, proof, noise, budget
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

    SECTION: ClassVar[str] = "certify"

    target: str | None = _option(_TARGET, key=None)
    radii: Sequence[float] | None = _option(
        "For classes: radii at which certified accuracy is measured.",
        "numbers",
        comment="where certified accuracy is measured",
        task=CLASSES,
        shown="0,0.25,0.5,1",
        unit=_OF_SCALING,
    )
    radius: float | None = _option(
        "For numbers: how large a change intervals cover.",
        "number",
        comment="of the intervals; else what the model was trained for",
        task=NUMBER,
        shown="what it was trained for",
        unit=_OF_SCALING,
    )
    tolerance: float | None = _option(
        "For numbers: write the radius within which a value moves by no more than this.",
        "number",
        task=NUMBER,
        unit=_OF_TARGET,
    )
    rule: str | None = _option(_RULE)
    proof: str = _option(
        "What may prove a radius: best, or paper for the paper's proof only.",
        default="best",
        choices=("best", "paper"),
    )
    noise: Noise | str | float | None = _option(
        "Noise to certify under, such as gaussian:0.25, or 0.25 alone; none: the model as deployed, with --rule mean.",
        "noise",
        shown="the model's own",
        unit=_OF_SCALING,
    )
    budget: int | None = _option(
        "Of models whose trees join many columns: how many nodes the search may look at for each row.",
        "whole",
        comment="nodes of the search for each row, of models whose trees join many columns",
        metavar="NODES",
        shown="20000",
        least=1,
    )
    changes: Mapping[str, Any] = field(default_factory=dict)
    l0: int | None = None
    threat: Threat | PathLike | None = _option(
        "What may change, in a file instead of --norm, --limits, ..., --l0 and --missing.",
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
    identity: str | None = _option(_IDENTITY, flag="--id", key="id")
    keep: Sequence[str] = _texts(
        "Another column to copy into what is written. Repeatable.", comment="further columns to copy"
    )
    n_jobs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyFiles:
    """Where many files are certified."""

    SECTION: ClassVar[str] = ""

    scheduler: str | None = _option(
        "Of many files: the Dask scheduler whose workers certify them, such as tls://10.0.0.1:8786.",
        metavar="ADDRESS",
    )
    workers: int | None = _option(
        "Of many files: how many processes to start here instead.", "whole", shown="one per core", least=1
    )
    resume: bool = _option("Of many files: leave out those that an earlier run has certified.", "truth", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """What `audit_file` is asked for.

    Attributes
    ----------
    target : str or None
        A column of the data that is no feature, as for certifying: columns of a model that was trained without names
        are told by their position.
    rows : int
        How many rows to look at, at random where there are more; 0 is all.
    seed : int or None
        Which ones; None is 0.
    output : path-like or None
        Where to write row, claimed, proven, verdict and claim of each row, .csv or .parquet.
    """

    SECTION: ClassVar[str] = "audit"

    target: str | None = _option("Column of the table that is no feature, as for `derand certify`.", key=None)
    rows: int = _option(
        "How many rows to look at, at random where there are more; 0: all.",
        "whole",
        default=200,
        comment="how many, drawn at random; 0: all",
        metavar="N",
        least=0,
    )
    seed: int | None = _option(
        "Which rows, where not all are looked at.",
        "whole",
        comment="which ones",
        shown="another sample each time",
        least=0,
    )
    output: PathLike | None = _option("Where to write row, claimed, proven, verdict and claim of each row.", "name")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProveSettings:
    """What `prove_file` is asked for.

    Attributes
    ----------
    protected : sequence of str
        Columns that must not change an answer; they change together.
    monotone, radius, norm, unseen, missing, rule, noise, budget
        As for `prove` of a classifier.
    domain : mapping of column to pair or list
        As for `prove`.
    target : str or None
        A column of the data that is no feature.
    """

    SECTION: ClassVar[str] = ""

    protected: Sequence[str] = _texts("A column that must not change an answer; several change together. Repeatable.")
    monotone: Mapping[str, str] | None = _option(
        "A number in which the score must only rise (increasing) or fall (decreasing). Repeatable.",
        "directions",
        shown="what the model was trained with",
        metavar="COLUMN=DIRECTION",
    )
    domain: Mapping[str, Sequence[float | str]] | None = _option(
        "Between which ends a number lies, or which categories there are (A,B,C). Repeatable.",
        "domains",
        shown="whole numbers of the training range, any other number, all categories of training",
        metavar="COLUMN=LOW:HIGH",
    )
    unseen: bool = _option("Also categories that training did not see.", "truth", default=False)
    missing: bool = _option("Also missing values, where the model takes them.", "truth", default=False)
    radius: float | None = _option(
        "Bound by how much the score changes within this radius of any row.", "number", unit=_OF_SCALING, least=0
    )
    norm: str = _option("Norm of that radius.", default="inf", choices=("1", "2", "inf"))
    rule: str | None = _option(_RULE)
    noise: Noise | str | float | None = _option("none: the model as deployed, with --rule mean.", "noise")
    budget: int | None = _option(
        "Nodes that each search of a model with trees may look at.", "whole", metavar="NODES", shown="20000", least=1
    )
    target: str | None = _option("Column of the table that is no feature, as for `derand certify`.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFileSettings:
    """What `report_file` is asked for.

    Attributes
    ----------
    target : str or None
        Column with the true labels or numbers.
    train : path-like or None
        The training table, with the target: a surrogate trained on it without noise becomes a baseline. For classes.
    subgroups : sequence of str
        Columns whose groups are compared; they need not be features.
    radius, l0, title, rule, noise, what_if, configuration, notes, protected
        As for Report.
    class_names : mapping of str to str, or None
        What classes are called, by their labels as text. For classes.
    compare : path-like or None
        Another saved classifier, which stands beside the first on the same rows. For classes.
    threat : Threat, path-like or None
        What may change, or a TOML file that says so; instead of `l0`. None is the model's `default_threat`.
    whole : bool
        Whether columns that held whole numbers alone in training stay whole; not beside `threat`, which says so itself.
    rows : int
        Of the interactive table, at most.
    identity : str or None
        Column whose values name the rows; it need not be a feature.
    tolerance : float or None
        As for Report. For numbers.
    left_out : sequence of str
        As for Report; without it is told which columns of the file the model does not read.
    one_page : bool
        Only the page to sign, which prints to one A4 page: .html or .pdf.
    page : path-like or None
        Where the page to sign goes as well.
    """

    SECTION: ClassVar[str] = "report"

    target: str | None = _option(replace(_TARGET, help="Column with the true labels or numbers."), key=None)
    train: PathLike | None = _option(
        "The training table, to compare with a model that is not trained to be robust.", "file", key=None, task=CLASSES
    )
    subgroups: Sequence[str] = _texts(
        "A column of subgroups. Repeatable.",
        flag="--subgroup",
        comment="columns whose groups are compared",
    )
    radius: float | None = _option(
        "The radius that the text speaks of; for numbers that of their intervals.",
        "number",
        comment="that the text speaks of; 0.25 unless stated",
        shown="0.25, in norm 0 one column; for numbers what the model was trained for",
        unit=_OF_SCALING,
    )
    class_names: Mapping[str, str] | None = _option(
        "What classes are called.",
        "names",
        comment="what classes are called in the report",
        task=CLASSES,
        metavar="0=repaid,1=default",
    )
    compare: PathLike | None = _option(
        "Another model, to stand beside the first: the same rows, the same changes.",
        "compare",
        comment="with a model that is not trained to be robust",
        task=CLASSES,
        metavar="OTHER.json",
    )
    l0: int | None = _option(
        "Largest number of categorical columns that may change.",
        "whole",
        key=None,
        shown="what the model was trained for, else 3, or all where there are fewer",
    )
    title: str | None = _option("Title of the report.", comment="above the report")
    rule: str | None = _option(_RULE, key=None)
    noise: Noise | str | float | None = _option(
        "none: report on the model as deployed, with --rule mean.", "noise", key=None
    )
    threat: Threat | PathLike | None = _option(
        "What may change, in a file, instead of --l0.", "file", key=None, metavar="FILE.toml", shown="the model's own"
    )
    whole: bool = _option(_WHOLE, default=False, key=None)
    what_if: bool = _option(
        "Leave out “What if”, and with it the model's tables.", "truth", default=True, flag="--no-what-if"
    )
    rows: int = _option("Largest number of rows that the page lists.", "whole", default=100_000, least=1)
    identity: str | None = _option(replace(_IDENTITY, help="Column that names the rows."), flag="--id", key=None)
    tolerance: float | None = _option(
        "Of numbers, by how much answers may move: the report says within which radius they do not move farther.",
        "number",
        key=None,
        task=NUMBER,
        shown="near the mean error",
        unit=_OF_TARGET,
    )
    protected: Sequence[str] = _texts(
        "A column that must not change an answer: promises about every row are added. Repeatable.",
        task=CLASSES,
    )
    one_page: bool = _option(
        "Only the page to sign, which prints to one A4 page.",
        "truth",
        default=False,
        comment="also one_page.html, a page to sign",
    )
    configuration: str | None = None
    notes: Sequence[str] = ()
    left_out: Sequence[str] = ()
    page: PathLike | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorSettings:
    """What `monitor_file` is asked for.

    Attributes
    ----------
    target : str or None
        Column with the true labels of the batches.
    subgroups : sequence of str
        Columns whose groups are looked at; they need not be features.
    train : path-like or None
        The training table, for the ranges of its numbers.
    radius, rule, noise, rate, title
        As for `derand.Monitor`.
    threat : Threat, path-like or None
        What may change, or a TOML file that says so. None is the model's `default_threat`.
    changes : mapping
        Fields of Threat that differ from those of the model's `default_threat`; not beside `threat`.
    """

    SECTION: ClassVar[str] = ""

    target: str | None = _option(replace(_TARGET, help="Column with the true labels, to compare right answers."))
    subgroups: Sequence[str] = _texts("A column of subgroups. Repeatable.", flag="--subgroup")
    train: PathLike | None = _option("The training table, to count numbers beyond its ranges.", "file")
    radius: float | None = _option(
        "Which certified radius counts as holding, where the threat has a ball.",
        "number",
        shown="0.25, in norm 0 one column",
        unit=_OF_SCALING,
    )
    rule: str | None = _option(_RULE)
    noise: Noise | str | float | None = _option("none: the model as deployed, with --rule mean.", "noise")
    rate: float = _option(
        "Highest probability of an alarm of a batch where nothing has changed.", "share", default=0.05
    )
    title: str | None = _option("Title of the page.")
    threat: Threat | PathLike | None = _option(
        "What may change, in a file instead of --norm, --limits, ..., --l0 and --missing.",
        "file",
        metavar="FILE.toml",
    )
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class InitSettings:
    """What `init_file` is asked for.

    Attributes
    ----------
    test : path-like or None
        Rows to certify; None holds a share of the table out.
    task, categorical, ignored
        As for TrainSettings.
    force : bool
        Replace a file that exists.
    """

    SECTION: ClassVar[str] = ""

    test: PathLike | None = _option(
        "Rows to certify, CSV or Parquet.", "file", shown="a quarter of the table is held out"
    )
    task: str | None = _option(replace(_TASK, shown="a guess"))
    categorical: Sequence[str] = _option(_CATEGORICAL, default=())
    ignored: Sequence[str] = _option(_IGNORED, default=())
    force: bool = _option("Replace a file that exists.", "truth", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What a `derand.toml` says beside what its steps are asked for."""

    SECTION: ClassVar[str] = "data"

    train: str | None = _option("Table to learn from, CSV or Parquet.", flag=None)
    target: str | None = _option("Column to be predicted.", flag=None)
    test: str | None = _option("Rows to certify.", flag=None, comment="rows to certify, instead of holdout and seed")
    holdout: float | None = _option(
        "Share of the rows that is not trained on.",
        "share",
        flag=None,
        comment="share of the rows that is not trained on: these are certified",
    )
    seed: int = _option(
        "Which rows are held out.", "whole", default=0, flag=None, comment="which rows: the same number, the same rows"
    )
    file: str | None = _option(
        "A saved model.",
        flag=None,
        section="model",
        comment="a model of `derand train` or `derand import`, instead of all these keys",
    )
    certified: str = _option(
        "Certificates.",
        "name",
        default="certified.csv",
        flag=None,
        key="output",
        section="certify",
        comment="one line per row: .csv or .parquet",
    )
    report: str = _option(
        "The report.",
        "name",
        default="report.html",
        flag=None,
        key="output",
        section="report",
        comment=".html, .pdf, .md, .tex or .json",
    )
    folder: str = _option(
        "Where results go.",
        default="results",
        flag=None,
        section="output",
        comment="all results go there, with the record run.json",
    )
