"""What an importer reads of a fitted model, and the model that stands for it.

Owns the fineness of the grid: as fine as whole scores allow, so that nothing but rounding lies between both, and says
how much that is. Must not know any library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from derand._core.arrays import EPSILON, BoolArray, FloatArray
from derand._core.origin import Cell
from derand.convert._edges import bracket_single
from derand.model import AdditiveEnsemble, CategoryShape, GridShape, Line, Shape, TreeShape
from derand.noise import Noise
from derand.tables import Labels, TableEncoding

RawScores = Callable[[FloatArray], FloatArray]
AnyShape = TypeVar("AnyShape", Shape, GridShape, CategoryShape, Line, TreeShape)
FINEST_LEVELS = 2**52
_ROOM = 2.0**50
"""What all scores together may reach: well within 2**53, differences of two classes included."""


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A fitted model of another library as functions of real values whose sum is its raw score.

    Attributes
    ----------
    encoding : TableEncoding
        Names of the columns, and the categories of those that are categorical: code k of a table is category k.
    shapes, grids, tables : sequences of Shape, GridShape and CategoryShape
        No column in two of them. Of several classes values have one number per class.
    intercept : float, or array of shape (n_classes,)
        An array says that the class of the largest score is the answer, a number that class 1 is where the score is
        above 0, or that the score is the answer (`classes` None).
    classes : array of shape (n_classes,), or None
        Labels, in the order of the scores; None for a regressor.
    arithmetic_error : float
        How far the raw score that the library computes, in its own arithmetic, may lie from the exact sum on any row,
        beside what lines say of themselves.
    link : {"logit", "share", "none"}
        What the library makes of raw scores: "logit" where they are logarithms of odds (of several classes, those that
        a softmax turns into probabilities); "share" where they are probabilities, of two classes less 1/2; "none" where
        there are none.
    raw_scores : function of encoded rows, (n_rows, n_features), or None
        Raw scores as the library computes them, (n_rows,) or (n_rows, n_classes), to compare with. Rows are encoded:
        codes for categories, -1 for an unseen one, NaN for what is missing. None where the library is not there.
    source : str
        What was read, such as "xgboost.XGBClassifier", for messages and files.
    lines : sequence of Line
        Slopes of numerical columns, where all functions of numbers are lines: `shapes` and `grids` are empty then.
    refused : sequence of pairs
        Columns of categories, and whether a missing cell (True) or an unseen one is refused there by the library.
    precise : sequence of int
        Columns with which steps compute in the precision that they come in: what was read is true of doubles.
    calibration : (float, float)
        Slope and shift that turn a raw score into one of which the link makes probabilities, of two classes: not (1, 0)
        where the library cuts elsewhere than at one half.
    noise : Noise or None
        Of a model of this package that answers by scores expected under it; its units are those of these columns.
    trees : sequence of TreeShape
        Sums of trees over columns that are in none of the functions above.
    tie : float
        By how much raw scores were moved down, so that scores that tie lie on the side of the lower class: see
        `part_ties`.
    respond : function of raw scores, (n,), or None
        Probabilities of both classes, (n, 2), as the library itself computes them in single precision, of raw scores
        before they were moved. None where they are what the link says, in doubles.
    """

    encoding: TableEncoding
    shapes: Sequence[Shape] = ()
    grids: Sequence[GridShape] = ()
    tables: Sequence[CategoryShape] = ()
    intercept: float | FloatArray = 0.0
    classes: Labels | None = None
    arithmetic_error: float = 0.0
    link: str = "none"
    raw_scores: RawScores | None = None
    source: str = ""
    lines: Sequence[Line] = ()
    refused: Sequence[tuple[int, bool]] = ()
    precise: Sequence[int] = ()
    calibration: tuple[float, float] = (1.0, 0.0)
    noise: Noise | None = None
    trees: Sequence[TreeShape] = ()
    tie: float = 0.0
    respond: Callable[[FloatArray], FloatArray] | None = None

    def build(self) -> AdditiveEnsemble:
        """The model on the finest grid that whole scores allow; its `score_error` covers rounding and arithmetic."""
        levels = self._choose_levels()
        door = AdditiveEnsemble.from_number_shapes if self.classes is None else AdditiveEnsemble.from_shapes
        return door(
            self.shapes,
            self.tables,
            intercept=self.intercept,  # type: ignore[arg-type]
            n_features=self.encoding.n_features,
            levels=levels,
            grids=self.grids,
            lines=self.lines,
            trees=self.trees,
            arithmetic_error=self.arithmetic_error,
        )

    def part_ties(self, tie: float) -> Reading:
        """The same model with the raw score of each class a little below that of the class before it.

        Equal scores go to the lower class, and sums of whole shares, which are exact, are then never at a threshold.
        """
        scores, count = self.raw_scores, np.size(self.intercept)
        shift = tie if count == 1 else tie * np.arange(count)

        def raw_scores(rows: FloatArray) -> FloatArray:
            assert scores is not None
            return np.asarray(scores(rows), dtype=np.float64) - shift

        intercept = np.asarray(self.intercept - shift)
        return replace(
            self,
            intercept=intercept if intercept.ndim else float(intercept),
            arithmetic_error=self.arithmetic_error + EPSILON * float(np.abs(intercept).max()),
            raw_scores=None if scores is None else raw_scores,
            tie=tie,
        )

    def locate_answers(self, is_one: Callable[[FloatArray], BoolArray]) -> tuple[float, float]:
        """The raw score above which `is_one` of what the library responds, and how far its arithmetic may be off it.

        The least raw score in single precision that it answers with class 1 is asked of the library itself.
        """
        respond = self.respond
        assert respond is not None
        low, high = bracket_single(lambda scores: is_one(respond(scores)))
        if not math.isfinite(low):
            raise ValueError(
                f"{self.source} answers the same whatever its raw score is: no change of a row can move it."
            )
        is_sharp = np.nextafter(np.float32(low), np.float32(high)) == np.float32(high)
        return 0.5 * (low + high) - self.tie, 0.0 if is_sharp else high - low

    def negate(self) -> Reading:
        """The same model of two classes with the opposite raw score: classes change places."""
        scores = self.raw_scores

        def raw_scores(rows: FloatArray) -> FloatArray:
            assert scores is not None
            return -np.asarray(scores(rows), dtype=np.float64)

        def turn_fields(part: AnyShape, *names: str) -> AnyShape:
            given: dict[str, object] = {name: getattr(part, name) for name in names}
            turned: dict[str, Cell] = {name: None if one is None else -np.asarray(one) for name, one in given.items()}
            return part._replace(**turned)

        return replace(
            self,
            shapes=[turn_fields(one, "values", "missing") for one in self.shapes],
            grids=[turn_fields(one, "values") for one in self.grids],
            tables=[turn_fields(one, "values", "other", "missing") for one in self.tables],
            lines=[turn_fields(one, "slope", "missing") for one in self.lines],
            trees=[turn_fields(one, "values") for one in self.trees],
            intercept=-float(self.intercept),
            raw_scores=None if scores is None else raw_scores,
        )

    def move(self, start: float, error: float = 0.0) -> Reading:
        """The same model of two classes, which decides at the raw score `start`, that may be off by `error`."""
        scores = self.raw_scores

        def raw_scores(rows: FloatArray) -> FloatArray:
            assert scores is not None
            return np.asarray(scores(rows), dtype=np.float64) - start

        slope, shift = self.calibration
        rounding = 4 * EPSILON * (abs(float(self.intercept)) + abs(start))
        return replace(
            self,
            intercept=float(self.intercept) - start,
            arithmetic_error=(self.arithmetic_error + error + rounding) * (1 + 4 * EPSILON),
            raw_scores=None if scores is None else raw_scores,
            calibration=(slope, shift + slope * start),
        )

    def _choose_levels(self) -> int:
        """The largest power of two, of a mean of trees times their number, at which all scores keep their room."""
        single: list[Shape | CategoryShape] = [*self.shapes, *self.tables]
        functions: list[Shape | CategoryShape | GridShape] = [*single, *self.grids]
        parts = [np.abs(one.values).max(initial=0.0) for one in functions]
        parts += [np.abs(one.other).max() for one in self.tables]
        parts += [np.abs(one.missing).max() for one in single if one.missing is not None]
        parts += [one.largest_sum for one in self.trees]
        largest = float(np.abs(self.intercept).max()) + math.fsum(map(float, parts))
        if not math.isfinite(largest):
            raise ValueError(f"The scores of {self.source} must be finite, got nan or infinity.")
        divisor = max((one.divisor for one in self.trees), default=1)
        spare = _ROOM / max(largest, 2.0**-2) / divisor
        return divisor * min(FINEST_LEVELS, int(2 ** max(0, math.floor(math.log2(spare)))))
