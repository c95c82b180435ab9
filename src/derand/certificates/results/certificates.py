"""What comes out of certifying labels and numbers, and distributions of scores. Must not know models."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from derand._core.arrays import BoolArray, FloatArray, Frozen, IntArray, Labels, freeze
from derand._core.markup import write_block, write_lines, write_table
from derand._core.origin import Origin, refuse_other_rows
from derand._core.text import format_count, format_percent, format_readable, format_short_down
from derand.certificates.results.base import RowResults
from derand.certificates.results.flips import FlipSummary
from derand.certificates.rules.base import NO_PROOF, PAPER, PROOFS
from derand.kernels import PATH_REASONS, PATHS
from derand.noise import Noise
from derand.threat import Threat

HTML_ROWS = 5
"""How many rows notebooks show."""
_ARRAYS = ("label", "failure", "log_failure", "radius")
_OPTIONAL = ("runner_up", "flips", "witness", "worst", "is_tie", "attacked", "is_exact", "flipped")


@dataclass(frozen=True, slots=True, eq=False)
class Certificates(RowResults):
    """What is proven about each row: no change within the threat and within the radius flips the label.

    Attributes
    ----------
    label : array of shape (n_rows,)
        Label by the rule, one of `classes`.
    failure : array of shape (n_rows,)
        Upper bound of the probability that a noisy copy of the row, after the worst categorical change, gets another
        label; NaN for a weighted vote and under the rule "mean", which have none. Of several classes that of its
        worst comparison.
    log_failure : array of shape (n_rows,)
        Natural logarithm of `failure`.
    radius : array of shape (n_rows,)
        Lower bound of the radius; the ball is open. 0 where nothing is certified. For norm 0 the number of numerical
        columns that may become anything.
    threat : Threat
        What may change.
    classes : array of shape (n_classes,)
    rule : str
        How the label is found: "vote" or "mean".
    proof : array of shape (n_rows,)
        What proves each radius: "paper", the failure mass; "dual", a multiplier of the distance, which bounds the worst
        case of the expected score; "exact", that worst case itself (under noise up to the resolution of tables, some
        1e-4); "none" where nothing is certified. For a vote of ensembles that of the member that decides.
    noise : Noise or None
        Under which it is found; None for the model as deployed.
    norm : float
        The norm of the ball, after division by the threat's units.
    l0 : int
        How many categorical features may change at the same time.
    flips : array of booleans, shape (n_rows,), or None
        Only where limits alone say what may change (`Threat(norm=None)`): whether a change within them was found that
        flips the label.
    witness : array of shape (n_rows, n_features) or None
        There, too: such a change of each row that flips, as the model reads it; other rows as they were. Of a model
        with trees, in a ball as well, and for ties: one that may flip.
    worst : array of shape (n_rows,) or None
        There, too, by the rule "mean": the lowest expected score (of label 0 the highest) that a change within the
        limits can reach, in grid units; a bound, exact without noise. None for a vote of ensembles.
    verdict : array of shape (n_rows,) or None
        There, too: "holds" (proven), "flips" (with a witness) or "undecided".
    attacked : array of shape (n_rows,) or None
        Of a model with trees, in a ball: the distance of the nearest flip that is known, which is the witness; infinite
        where there is none. The true radius lies between `radius` and this.
    is_exact : array of booleans, shape (n_rows,), or None
        There, too: whether the radius is the true one.
    is_tie : array of booleans, shape (n_rows,), or None
        Of a model with trees: undecided because a score lies within the rounding of the model's own arithmetic, not
        because the budget was spent.
    runner_up : array of shape (n_rows,) or None
        The class that decides the radius: of all rivals the one that a change reaches first. Of two classes the other.
    path : array of shape (n_rows,) or None
        How each failure mass was computed: "law", "tilted" or "inverted" (kernels/README.md); None where there is no
        one mass of a row, by the rule mean and for a vote of ensembles. `explain_paths` says why.
    flipped : array of shape (n_rows,) or None
        There, too: the label that the change gets; that of the row where none was found.
    names : tuple of str, or None
        Names of the columns, where an estimator that has some certified the rows.
    origin : Origin or None
        The table that the rows came from, where an estimator certified them: `to_pandas` and `to_frame` keep its index.

    All arrays are read-only.
    """

    label: Labels
    failure: FloatArray
    log_failure: FloatArray
    radius: FloatArray
    threat: Threat
    classes: Labels = field(default_factory=lambda: np.array([0, 1]))
    rule: str = "vote"
    noise: Noise | None = None
    flips: BoolArray | None = None
    witness: FloatArray | None = None
    worst: FloatArray | None = None
    runner_up: NDArray[np.generic] | None = None
    is_tie: BoolArray | None = None
    attacked: FloatArray | None = None
    is_exact: BoolArray | None = None
    _proof: NDArray[np.uint8] | None = field(default=None, repr=False)
    _path: NDArray[np.uint8] | None = field(default=None, repr=False)
    origin: Origin | None = field(default=None, repr=False)
    flipped: Labels | None = None
    names: tuple[str, ...] | None = None
    _changes: NDArray[np.int8] | None = field(default=None, repr=False)

    per_row: ClassVar[tuple[str, ...]] = ("radius", *_ARRAYS[:-1], "_proof", "_path", "_changes", *_OPTIONAL)
    shared: ClassVar[tuple[str, ...]] = ("classes",)

    @property
    def verdict(self) -> NDArray[np.str_] | None:
        """What is known of each row where limits alone say what may change."""
        if self.flips is None:
            return None
        return np.where(self.radius > 0, "holds", np.where(self.flips, "flips", "undecided"))

    @property
    def l0(self) -> int:
        """How many categorical features may change."""
        return self.threat.l0

    @property
    def changed(self) -> BoolArray | None:
        """Which columns the witness of each row changes, (n_rows, n_features); None where none are searched."""
        return None if self._changes is None else np.asarray(self._changes != 0)

    @property
    def proof(self) -> NDArray[np.str_]:
        """What proves each radius."""
        codes = np.where(self.radius > 0, PAPER, NO_PROOF) if self._proof is None else self._proof
        return np.array(PROOFS)[codes]

    @property
    def path(self) -> NDArray[np.str_] | None:
        """How each failure mass was computed."""
        return None if self._path is None else np.array(PATHS)[self._path]

    def explain_paths(self) -> dict[str, tuple[int, str]]:
        """How many rows went each way, and why it is taken.

        Returns
        -------
        dict
            For each way of `path` that some rows went: their number, and the reason. Empty where there is no path.
        """
        if self._path is None:
            return {}
        counts = np.bincount(self._path, minlength=len(PATHS)).tolist()
        return {name: (count, why) for name, count, why in zip(PATHS, counts, PATH_REASONS, strict=True) if count}

    def __repr__(self) -> str:
        certified = int((self.radius > 0).sum())
        where = self._name_ball("l{} ball")
        return f"<Certificates: {len(self)} rows, {certified} certified, {where}, {self._name_request()}>"

    def _repr_html_(self) -> str:
        """For notebooks: what is certified of all rows, and the first ones."""
        radius, verdict = self.radius, self.verdict
        facts = [("rows", format_count(len(self)))]
        if verdict is not None:
            facts += [(name, format_count(int((verdict == name).sum()))) for name in ("holds", "flips", "undecided")]
            facts += (
                [] if self.is_tie is None else [("ties, which are undecided", format_count(int(self.is_tie.sum())))]
            )
        elif len(self):
            facts.append(("certified", _count_share(radius > 0)))
            facts += list_quantiles(radius)
            facts.append(("rows that no change flips", _count_share(np.isinf(radius))))
        shown = slice(0, HTML_ROWS)
        last = [write_radius(one) for one in radius[shown]] if verdict is None else verdict[shown]
        headers = ["row", "label", "radius" if verdict is None else "verdict", "proof"]
        lines = zip(range(HTML_ROWS), self.label[shown], last, self.proof[shown], strict=False)
        note = write_lines([repr(self)], muted=True)
        return write_block("Certificates", write_table([], facts), write_table(headers, lines), note)

    def with_classes(self, classes: NDArray[np.generic], names: tuple[str, ...] | None = None) -> Certificates:
        """The same with labels of these classes in the place of 0, 1, ..., and with names of columns."""
        runner_up, flipped = (None if one is None else classes[one] for one in (self.runner_up, self.flipped))
        label = classes[self.label]
        return replace(self, label=label, runner_up=runner_up, flipped=flipped, classes=classes, names=names)

    def summary(self, y: ArrayLike | None = None) -> FlipSummary:
        """Why decisions flip, where limits alone say what may change: by column, direction and answer.

        Each row is counted once, by its witness.

        Parameters
        ----------
        y : array-like of shape (n_rows,), or None
            True labels: counts are by true class, too.

        Returns
        -------
        FlipSummary
            Its `columns` and `answers` hold the counts, `list_sentences()` says them, `to_pandas()` is a table.

        Examples
        --------
        >>> from derand import AdditiveEnsemble, Threat, certify
        >>> model = AdditiveEnsemble.from_stumps([0, 1], [0.5, 9.0], [0.1, 0.3], [0.9, 0.4], n_features=2)
        >>> threat = Threat(norm=None, limits={0: 1})
        >>> c = certify(model, [[0.0, 0.0], [0.2, 3.0], [2.0, 0.0]], None, rule="mean", threat=threat)
        >>> [(one.column, one.direction, one.n_alone, one.n_rows) for one in c.summary().columns]
        [(0, 'up', 2, 2)]
        >>> c.summary().list_sentences()
        ["Of 2 rows with the answer '0', 2 can become '1': 2 by one column alone."]
        """
        if self.flips is None or self._changes is None or self.flipped is None:
            raise ValueError(
                "`summary` counts changes that flip, which are searched where limits alone say what may change: "
                f"certify with `threat=Threat(norm=None, limits=...)`, got norm {self.norm}."
            )
        refuse_other_rows(y, self, "y")
        truth = None if y is None else np.asarray(y)
        if truth is not None and truth.shape != self.label.shape:
            raise ValueError(f"`y` must hold one label per row, {len(self)} in all, got shape {truth.shape}.")
        labels = self.label, truth, self.flipped
        return FlipSummary.count(labels, self.flips, self._changes, self.names, unseen=bool(self.threat.unseen))

    def list_columns(self) -> dict[str, NDArray[np.generic]]:
        """What tables hold: label, radius and proof, and failure and log_failure where the rule has failure masses.

        For more than two classes also runner_up; verdict, attacked and is_exact where there are some.
        """
        has_masses = self.rule != "mean" and not (len(self) and np.isnan(self.failure).all())
        names = _ARRAYS if has_masses else ("label", "radius")
        columns = {name: getattr(self, name) for name in names} | {"proof": self.proof}
        if self.classes.size > 2:
            columns["runner_up"] = self.runner_up
        more = {"verdict": self.verdict, "attacked": self.attacked, "is_exact": self.is_exact}
        return columns | {name: value for name, value in more.items() if value is not None}


def write_radius(radius: float) -> str:
    """A radius for a table, cut."""
    return format_short_down(float(radius))


def list_quantiles(radius: FloatArray) -> list[tuple[str, str]]:
    """Radii that nine in ten rows, half of them and one in ten reach."""
    ordered = np.sort(radius)  # a row is taken, not a mean of two, which may be infinite
    positions = {"nine in ten rows": 0.1, "half of the rows": 0.5, "one in ten rows": 0.9}
    return [
        (f"radius that {who} reach", write_radius(ordered[int(share * (ordered.size - 1))]))
        for who, share in positions.items()
    ]


def _count_share(which: BoolArray) -> str:
    return f"{format_count(int(which.sum()))} ({format_percent(float(which.mean()))})"


@dataclass(frozen=True, slots=True, eq=False)
class Distribution(Frozen):
    """Exact distribution of the score of each row under noise.

    Attributes
    ----------
    support : array of integers, shape (n_levels,)
        Scores in grid units, increasing.
    pmf : array of shape (n_rows, n_levels)

    Both are read-only.
    """

    support: IntArray
    pmf: FloatArray

    def __post_init__(self) -> None:
        for name in ("support", "pmf"):
            object.__setattr__(self, name, freeze(np.asarray(getattr(self, name)).view()))

    def cdf(self, score: ArrayLike) -> FloatArray:
        """P(S <= score): shape (n_rows,) for a number, (n_rows, k) for k of them."""
        levels = np.asarray(score, dtype=np.float64)
        sums = np.concatenate([np.zeros((len(self.pmf), 1)), np.cumsum(self.pmf, axis=1)], axis=1)
        return np.asarray(sums[:, np.searchsorted(self.support, levels, side="right")])

    def quantile(self, z: ArrayLike) -> IntArray:
        """Smallest score whose cdf is at least z: shape (n_rows,) for a number, (n_rows, k) for k of them."""
        sums = np.cumsum(self.pmf, axis=1)
        wanted = np.atleast_1d(np.asarray(z, dtype=np.float64))
        if not ((wanted >= 0) & (wanted <= 1)).all():
            raise ValueError(f"`z` must lie in [0, 1], got {z!r}.")
        at = np.array([np.searchsorted(row, wanted * min(row[-1], 1.0)) for row in sums], dtype=np.int64)
        scores = self.support[np.minimum(at.reshape(len(sums), wanted.size), self.support.size - 1)]
        return np.asarray(scores if np.ndim(z) else scores[:, 0])

    @property
    def median(self) -> IntArray:
        """Smallest score whose cdf is at least 1/2: the smoothed label is 1 iff it exceeds the threshold."""
        return self.quantile(0.5)

    def percentile(self, allowed: ArrayLike, *, row: int, label: int) -> IntArray:
        """The score that all but an allowed share of a row's noisy copies reach on the label's side (docs/theory.md).

        Parameters
        ----------
        allowed : array-like of any shape
            Failure masses.
        row : int
        label : {0, 1}
            1 lies above the threshold.

        Returns
        -------
        array of the shape of `allowed`

        Examples
        --------
        >>> law = Distribution(np.array([0, 1, 2]), np.array([[0.1, 0.2, 0.7]]))
        >>> law.percentile([0.05, 0.15], row=0, label=1).tolist()
        [0, 1]
        """
        order = slice(None) if label else slice(None, None, -1)
        support, mass = self.support[order], self.pmf[row][order]
        at = np.searchsorted(np.cumsum(mass), np.asarray(allowed), side="right")
        return np.asarray(support[np.minimum(at, support.size - 1)])


class Ends(RowResults):
    """A base of results with an interval of predictions per row."""

    __slots__ = ()

    value: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def width(self) -> FloatArray:
        """How long each interval is."""
        return np.asarray(self.high - self.low)

    def list_columns(self) -> dict[str, NDArray[np.generic]]:
        """What tables hold: value, low, high and width."""
        return {name: getattr(self, name) for name in ("value", "low", "high", "width")}


@dataclass(frozen=True, slots=True, eq=False)
class Intervals(Ends):
    """What is proven about the number that answers each row: no change within the threat takes it out of its interval.

    Attributes
    ----------
    value : array of shape (n_rows,)
        The answer, as `predict` gives it.
    low, high : arrays of shape (n_rows,)
        Ends that the computed answer of no changed row lies beyond. They are answers of the model's grid, rounded as
        answers are (rounding keeps the order of numbers); by the rule "mean" under noise they are wider by more than
        all roundings of an answer. Where the model stands for another one (`score_error`), they hold for that one, too.
    radius : float or None
        Closer than which changes are covered; None where limits alone say what may change. For norm 0 how many columns
        may become anything.
    threat : Threat
    rule : str
        How the answer is found: "vote", the median of noisy copies, or "mean", the expected score.
    noise : Noise or None
    width : array of shape (n_rows,)
        `high - low`.
    origin : Origin or None
        The table that the rows came from, as for `Certificates`.

    All arrays are read-only.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    radius: float | None
    threat: Threat
    rule: str = "vote"
    noise: Noise | None = None
    origin: Origin | None = field(default=None, repr=False)

    per_row: ClassVar[tuple[str, ...]] = ("value", "low", "high")

    def __repr__(self) -> str:
        ball = self._name_ball("l{} ball")
        where = ball if self.radius is None else f"{ball} of radius {self.radius}"
        mean = f", mean width {float(self.width.mean()):.4g}" if len(self) else ""
        return f"<Intervals: {len(self)} rows{mean}, {where}, {self._name_request()}>"

    def _repr_html_(self) -> str:
        """For notebooks: how wide intervals are, and those of the first rows."""
        facts = [("rows", format_count(len(self)))]
        if len(self):
            median = np.sort(self.width)[len(self) // 2]
            facts += [("mean width", _write_value(float(self.width.mean()))), ("median width", _write_value(median))]
        shown = [getattr(self, name)[:HTML_ROWS] for name in ("value", "low", "high", "width")]
        lines = [[at, *map(_write_value, line)] for at, line in enumerate(zip(*shown, strict=True))]
        table = write_table(["row", "value", "low", "high", "width"], lines)
        return write_block("Intervals", write_table([], facts), table, write_lines([repr(self)], muted=True))


@dataclass(frozen=True, slots=True, eq=False)
class ToleranceRadii(RowResults):
    """What is proven about the number that answers each row: closer than the radius it moves by the tolerance at most.

    Attributes
    ----------
    value : array of shape (n_rows,)
        The answer, as `predict` gives it.
    tolerance : float
    radius : array of shape (n_rows,)
        Lower bound of the radius; the ball is open. 0 where nothing is certified. For norm 0 the number of numerical
        columns that may become anything; without a ball infinite where the answer holds within the limits.
    threat : Threat
    rule : str
    noise : Noise or None
    proof : array of shape (n_rows,)
        What proves each radius, as for `Certificates`.
    origin : Origin or None
        The table that the rows came from, as for `Certificates`.

    All arrays are read-only.
    """

    value: FloatArray
    tolerance: float
    radius: FloatArray
    threat: Threat
    rule: str = "vote"
    noise: Noise | None = None
    _proof: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, dtype=np.uint8), repr=False)
    origin: Origin | None = field(default=None, repr=False)

    per_row: ClassVar[tuple[str, ...]] = ("value", "radius", "_proof")

    @property
    def proof(self) -> NDArray[np.str_]:
        """What proves each radius."""
        return np.array(PROOFS)[self._proof]

    def __repr__(self) -> str:
        certified = int((self.radius > 0).sum())
        return (
            f"<ToleranceRadii: {len(self)} rows, {certified} certified within +-{self.tolerance}, "
            f"{self._name_ball('l{} ball')}, {self._name_request()}>"
        )

    def _repr_html_(self) -> str:
        """For notebooks: radii of all rows in short, and those of the first rows."""
        facts = [("rows", format_count(len(self))), ("certified", format_count(int((self.radius > 0).sum())))]
        facts += list_quantiles(self.radius) if len(self) else []
        lines = [
            [at, _write_value(self.value[at]), write_radius(self.radius[at]), self.proof[at]]
            for at in range(min(len(self), HTML_ROWS))
        ]
        table = write_table(["row", "value", "radius", "proof"], lines)
        return write_block("Tolerance radii", write_table([], facts), table, write_lines([repr(self)], muted=True))

    def list_columns(self) -> dict[str, NDArray[np.generic]]:
        """What tables hold: value, radius and proof."""
        return {name: getattr(self, name) for name in ("value", "radius", "proof")}


def _write_value(value: float) -> str:
    return format_readable(float(value), 6)
