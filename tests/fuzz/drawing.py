"""Random cases of everything that `certify` takes, drawn from a `random.Random`.

So that one code serves both: a seeded generator draws 100,000 of them quickly, and hypothesis gives a generator whose
choices it can shrink (`strategies`). Ordinary numbers, and those that break careless arithmetic.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from derand import (
    AdditiveEnsemble,
    CategoryTable,
    Certificates,
    Noise,
    StepFunction,
    Threat,
    WeightedVote,
    certify,
)
from derand.model import Argmax, Decision, GridTerm, Model, Term
from derand.noise import NOISES

CODES = (0.0, 1.0, 2.0, 3.0)
ODD_CODES = (99.0, -1.0, math.nan)  # never seen, and missing
_CLASSES = (2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 4, 5)
_SCALES = (1.0, 1.0, 1.0, 0.1, 3.0, 1e-3, 1e5)
_UNITS = (1.0, 1.0, 0.1, 3.0, 1e-3, 1e4)


@dataclass(frozen=True)
class Case:
    """What `certify` takes."""

    model: Model
    rows: np.ndarray
    noise: Noise | None
    threat: Threat
    rule: str
    proof: str
    backend: str | None = None

    @property
    def norm(self) -> float | None:
        """The norm of the ball; None without one."""
        own = 2 if self.noise is None else self.noise.norm
        return own if self.threat.norm == "auto" else self.threat.norm

    def certify(self) -> Certificates:
        """What is claimed."""
        return certify(
            self.model,
            self.rows,
            self.noise,
            rule=self.rule,
            proof=self.proof,
            threat=self.threat,
            backend=self.backend,
            n_jobs=1,
        )

    def __repr__(self) -> str:  # whole: whoever reads it must be able to build it again
        members = [
            f"AdditiveEnsemble([{', '.join(f'{type(term).__name__}(**{term.describe()})' for term in member.terms)}], "
            f"{member.decision!r}, {member.n_features}, score_error={member.score_error})"
            for member in self.model.members
        ]
        weights = self.model.weights
        model = members[0] if weights is None else f"WeightedVote([{', '.join(members)}], {weights.tolist()})"
        how = f"rule={self.rule!r}, proof={self.proof!r}, backend={self.backend!r}"
        return f"certify({model}, {self.rows.tolist()}, {self.noise!r}, threat={self.threat!r}, {how})"


@dataclass(frozen=True)
class Column:
    """How values of one column lie: which numbers matter, how far apart, or that it holds categories."""

    is_category: bool
    centre: float
    scale: float


def draw_case(random: Random, *, classes: tuple[int, ...] = _CLASSES) -> Case:
    """A small model of one to four terms or a vote of such, a few rows, a noise or none, a threat, a rule.

    `classes` are the numbers of classes to choose from; votes have two.
    """
    n_steps = random.choice((1, 1, 2, 2, 3, 3, 4, 0))
    n_tables = random.choice((0, 0, 1, 1, 2)) if n_steps else random.choice((0, 1, 2))
    n_features = max(n_steps + n_tables + random.choice((0, 0, 0, 1)), 1)
    noise = draw_noise(random, n_features) if random.random() < 0.7 else None
    order = random.sample(range(n_features), n_features)
    columns = [draw_column(random, noise, at, at in order[n_steps : n_steps + n_tables]) for at in range(n_features)]
    read = order[: n_steps + n_tables]
    n_classes = random.choice(classes)
    if n_classes == 2 and random.random() < 0.12:
        members = [
            draw_ensemble(random, columns, [at for at in read if random.random() < 0.8])
            for _ in range(random.choice((1, 2, 3)))
        ]
        model: Model = WeightedVote(members, draw_weights(random, len(members)))
    else:
        model = draw_ensemble(random, columns, read, n_classes)
    rows = draw_rows(random, model, columns, random.choice((1, 1, 2, 3)))
    threat = draw_threat(random, model, rows, columns, noise)
    rule = "mean" if noise is None else random.choice(("vote", "vote", "mean"))
    proof = random.choice(("best", "best", "paper")) if rule == "vote" else "best"
    return Case(model, rows, noise, threat, rule, proof, random.choice((None, None, None, None, "numpy")))


def draw_grid_case(random: Random) -> Case:
    """A case of two classes in which two or three step functions have become one function of their columns."""
    while True:
        case = draw_case(random, classes=(2,))
        steps = [term for term in case.model.members[0].terms if isinstance(term, StepFunction)]
        if case.model.weights is None and len(steps) > 1:
            break
    (member,), chosen = case.model.members, random.sample(steps, min(len(steps), random.choice((2, 2, 3))))
    terms = [draw_grid(random, chosen), *(term for term in member.terms if term not in chosen)]
    model = AdditiveEnsemble(terms, draw_threshold(random, terms), member.n_features, score_error=member.score_error)
    return replace(case, model=model, threat=replace(case.threat, missing="fixed"))  # budgets are refused there


def draw_any_case(random: Random) -> Case:
    """A case, now and then with a term of several columns."""
    return draw_grid_case(random) if random.random() < 0.15 else draw_case(random)


def draw_grid(random: Random, steps: list[StepFunction]) -> GridTerm:
    """A function of the columns of some step functions: their sum in some boxes, any of their scores in others."""
    sides = [[*step.scores[:, 0].tolist(), *([] if step.missing is None else [step.missing])] for step in steps]
    pool = [score for side in sides for score in side]
    share = random.choice((0.0, 0.5, 1.0, 1.0))
    boxes = itertools.product(*sides)
    scores = [random.choice(pool) if random.random() < share else sum(box) for box in boxes]
    missing = [step.missing is not None for step in steps]
    return GridTerm([step.feature for step in steps], [step.edges for step in steps], scores, missing)


def draw_noise(random: Random, n_features: int) -> Noise:
    """A noise of any kind, with or without units."""
    kind: Any = NOISES[random.choice(sorted(NOISES))]
    units = tuple(random.choice(_UNITS) for _ in range(n_features)) if random.random() < 0.4 else None
    magnitude = random.choice((0.25, 1.0, 3.7, 1e-3, 1e5)) if random.random() < 0.6 else random.uniform(0.01, 20.0)
    noise: Noise = kind(magnitude, units)
    return noise


def draw_column(random: Random, noise: Noise | None, at: int, is_category: bool) -> Column:
    """Where the numbers of a column lie; under noise on its scale, mostly."""
    scale = random.choice(_SCALES)
    if noise is not None and random.random() < 0.9:
        scale = noise.magnitude * (1.0 if noise.units is None else noise.units[at])
    elif random.random() < 0.1:
        return Column(is_category, 0.0, random.choice((1e-161, 1e-305)))  # their squares, or they, are subnormal
    return Column(is_category, random.choice((0.0, 0.0, 1.0, -3.5, 0.1, 1e6, -1e-3)), scale)


def draw_ensemble(random: Random, columns: list[Column], read: list[int], n_classes: int = 2) -> AdditiveEnsemble:
    """A sum of one term for each column that it reads; of several classes a sum for each of them."""
    reach = random.choice((1, 2, 5, 5, 20, 1000)) if random.random() < 0.97 else 10**9  # the latter on a coarse grid
    factor = random.choice((1, 1, 1, 1, 7, 10**6)) if reach < 10**9 else 1
    n_outputs = n_classes if n_classes > 2 else 1
    terms = [draw_term(random, at, columns[at], reach, factor, n_outputs) for at in read]
    decision = draw_threshold(random, terms) if n_outputs == 1 else draw_offsets(random, terms, n_classes)
    error = random.choice((0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 2.5)) * random.choice((1, 1, factor))
    return AdditiveEnsemble(terms, decision, len(columns), score_error=error)


def draw_threshold(random: Random, terms: Sequence[Term]) -> int:
    """A level among the sums that there are, mostly."""
    lows, highs = zip(*(term.score_range() for term in terms), strict=True) if terms else ((0,), (0,))
    lowest, highest = sum(lows), sum(highs)
    return random.choice(
        (
            random.randint(lowest, highest),
            sum(int(random.choice(term.scores.ravel().tolist() or [0])) for term in terms),
            (lowest + highest) // 2,
            random.choice((lowest - 1, lowest, highest - 1, highest)),
        )
    )


def draw_offsets(random: Random, terms: list[StepFunction | CategoryTable], n_classes: int) -> Decision:
    """None, such that all classes are alike in some cells, or any within the range of scores."""
    cells = [random.choice([*term.scores.tolist(), [0] * n_classes]) for term in terms]
    lows, highs = zip(*(term.score_range() for term in terms), strict=True) if terms else ((0,), (0,))
    return Argmax(
        random.choice(
            (
                [0] * n_classes,
                [-sum(cell[at] for cell in cells) for at in range(n_classes)],
                [random.randint(sum(lows) // 4, max(sum(highs) // 4, sum(lows) // 4)) for _ in range(n_classes)],
            )
        )
    )


def draw_term(
    random: Random, at: int, column: Column, reach: int, factor: int, n_outputs: int = 1
) -> StepFunction | CategoryTable:
    """A step function or a category table, perhaps with a cell for missing values."""

    def draw_scores(count: int) -> list[int]:
        if random.random() < 0.1:
            return [factor * random.randint(-reach, reach)] * count  # constant
        return [factor * random.randint(-reach, reach) for _ in range(count)]

    def draw_cells(count: int) -> Any:
        """A score per cell, or one for each class: often the same for two of them, or in turn."""
        if n_outputs == 1:
            return draw_scores(count)
        outputs = [draw_scores(count) for _ in range(n_outputs)]
        if random.random() < 0.2:
            outputs[random.randrange(n_outputs)] = random.choice(outputs)
        elif random.random() < 0.2 and count:  # a circle: each class is ahead of the next one in most cells
            first = draw_scores(n_outputs)
            outputs = [[first[(cell - one) % n_outputs] for cell in range(count)] for one in range(n_outputs)]
        return np.array(outputs, dtype=np.int64).T.reshape(count, n_outputs)

    def draw_cell() -> Any:
        return draw_scores(1)[0] if n_outputs == 1 else tuple(draw_cells(1)[0].tolist())

    missing = draw_cell() if random.random() < 0.35 else None
    if column.is_category:
        categories = sorted(random.sample(CODES, random.randint(0, 3)))
        return CategoryTable(at, categories, draw_cells(len(categories)), draw_cell(), missing)
    edges = draw_edges(random, column)
    return StepFunction(at, edges, draw_cells(len(edges) + 1), missing)


def draw_edges(random: Random, column: Column) -> list[float]:
    """Increasing split points: a unit in the last place apart, close, or some scales apart."""
    count = random.choice((1, 1, 2, 2, 3, 4, 0))
    edges = [column.centre + column.scale * random.choice((0.0, random.uniform(-2, 2)))] if count else []
    while len(edges) < count:
        gap = random.choice((0.0, 1e-9, 0.02, 1.0, random.uniform(0.01, 4.0), random.uniform(0.01, 4.0)))
        edges.append(max(edges[-1] + gap * column.scale, math.nextafter(edges[-1], math.inf)))
    return edges


def draw_weights(random: Random, count: int) -> list[float]:
    """Equal, negative, zero, and sums that rounding cannot tell from a tie."""
    pool = (1.0, 1.0, 0.1, 0.2, 0.3, -1.0, -0.3, 2.0, 0.0, 1e-16, 1e300, random.uniform(-1, 1))
    return [random.choice(pool) for _ in range(count)]


def draw_rows(random: Random, model: Model, columns: list[Column], count: int) -> np.ndarray:
    """Rows near, on and an ulp beside the edges, or far away; gaps where the model takes them."""
    refuses = set(model.refuses_missing)
    edges: dict[int, list[float]] = {}
    for term in model.member_terms:
        for axis in term.axes:
            edges.setdefault(axis.feature, []).extend(axis.edges.tolist())

    def draw_value(at: int) -> float:
        column = columns[at]
        if column.is_category:
            return random.choice((*CODES, *CODES, *ODD_CODES))
        if at not in refuses and random.random() < 0.15:
            return math.nan
        anchor = random.choice(edges.get(at) or [column.centre])
        place = random.choice(("near", "near", "near", "near", "on", "beside", "far", "tiny"))
        if place == "near":
            return anchor + column.scale * random.uniform(-3, 3) * random.choice((1.0, 0.1))
        if place == "far":
            return anchor + column.scale * random.choice((-1e6, -700.0, -45.0, -7.0, 8.0, 12.0, 36.0, 1e3))
        if place == "tiny":
            return random.choice((5e-324, -5e-324, 1e-300, -0.0))
        return anchor if place == "on" else math.nextafter(anchor, random.choice((-math.inf, math.inf)))

    return np.array([[draw_value(at) for at in range(len(columns))] for _ in range(count)], dtype=np.float64)


def draw_threat(random: Random, model: Model, rows: np.ndarray, columns: list[Column], noise: Noise | None) -> Threat:
    """A ball in any norm or none, limits, domains, steps, frozen columns, categories, missing numbers."""
    norm: Any = random.choice(("auto", "auto", 0, 1, 2, math.inf, None))
    units = tuple(random.choice(_UNITS) for _ in columns) if random.random() < 0.25 else None
    frozen = tuple(at for at in range(len(columns)) if random.random() < 0.1)
    limits: dict[Any, Any] = {}
    domain, steps, may_become = {}, {}, {}
    boxed = norm is None or random.random() < 0.35
    for at, column in enumerate(columns):
        if at in frozen:
            continue
        if column.is_category:
            if random.random() < 0.25:
                may_become[at] = tuple(random.sample((*CODES, *ODD_CODES), random.randint(0, 3)))
            continue
        if boxed and random.random() < (0.7 if norm is None else 0.4):
            limits[at] = draw_limit(random, column)
        if boxed and random.random() < 0.25:
            domain[at] = draw_domain(random, rows[:, at], column)
        if boxed and random.random() < 0.25:
            steps[at] = max(random.choice((1.0, 0.5, 0.1, column.scale, 0.3 * column.scale)), 1e-299)
    if boxed and random.random() < 0.15:
        limits["*"] = random.choice(("1%", "20%", 0.5))
    missing: Any = random.choice(("fixed", 0, 1, 1, 2)) if model.missing_features else "fixed"
    l0, unseen = random.choice((0, 0, 1, 1, 2)), random.random() < 0.5
    return Threat(norm, l0, unseen, units, frozen, limits, domain, steps, may_become, missing)


def draw_limit(random: Random, column: Column) -> str | float | tuple[float, float]:
    """By how much a number may change: percent, absolute, or down and up."""
    down, up = (column.scale * random.choice((0.0, 0.1, 0.5, 1.0, 3.0, random.uniform(0, 2))) for _ in range(2))
    return random.choice(("5%", "50%", "0%", down, (down, up), (down, math.inf)))


def draw_domain(random: Random, values: np.ndarray, column: Column) -> tuple[float, float]:
    """Ends that hold all values that are there, often with nothing to spare."""
    there = values[np.isfinite(values)]
    lowest, highest = (float(there.min()), float(there.max())) if there.size else (0.0, 0.0)
    down, up = (column.scale * random.choice((0.0, 0.3, 2.0, math.inf)) for _ in range(2))
    return lowest - down, highest + up
