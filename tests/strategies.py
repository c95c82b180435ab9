"""Hypothesis strategies: noises, models and rows, ordinary ones and those that break careless arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from derand import AdditiveEnsemble, CategoryTable, Noise, StepFunction
from derand.noise import NOISES

MAGNITUDES = st.sampled_from([0.25, 1.0, 3.7, 1e-3, 1e5]) | st.floats(0.01, 100.0)
UNITS = st.sampled_from([1.0, 0.1, 3.0, 1e4]) | st.floats(0.01, 100.0)
CENTRES = st.sampled_from([0.0, 1.0, -3.5, 0.1, 1e6]) | st.floats(-10.0, 10.0)


@dataclass(frozen=True)
class Problem:
    """What `certify` takes."""

    model: AdditiveEnsemble
    rows: np.ndarray
    noise: Noise


@st.composite
def noises(draw: st.DrawFn, n_features: int) -> Noise:
    """A noise of any kind, with or without units."""
    kind = NOISES[draw(st.sampled_from(sorted(NOISES)))]
    units = draw(st.none() | st.lists(UNITS, min_size=n_features, max_size=n_features).map(tuple))
    return kind(draw(MAGNITUDES), units)  # type: ignore[call-arg]


def scale_of(noise: Noise, feature: int) -> float:
    return noise.magnitude * (1.0 if noise.units is None else noise.units[feature])


@st.composite
def edge_lists(draw: st.DrawFn, scale: float) -> list[float]:
    """Increasing split points: touching (one unit in the last place apart), close, or some scales apart."""
    count = draw(st.sampled_from([1, 2, 2, 3, 4, 0]))
    edges = [draw(CENTRES)] if count else []
    while len(edges) < count:
        gap = draw(st.just(0.0) | st.sampled_from([1e-9, 1e-3, 0.02]) | st.floats(0.01, 4.0)) * scale
        edges.append(max(edges[-1] + gap, math.nextafter(edges[-1], math.inf)))
    return edges


@st.composite
def positions(draw: st.DrawFn, edges: list[float], scale: float) -> float:
    """A feature's value: on an edge, one unit in the last place beside it, near, far away, or tiny."""
    anchor = draw(st.sampled_from(edges or [0.0]))
    place = draw(st.sampled_from(["near", "near", "near", "on", "beside", "far", "tiny"]))
    if place == "near":
        return anchor + scale * draw(st.floats(-5.0, 5.0))
    if place == "far":
        return anchor + scale * draw(st.sampled_from([-1000.0, -45.0, -20.0, -7.0, 8.0, 12.0, 36.0, 700.0]))
    if place == "tiny":
        return draw(st.sampled_from([5e-324, -5e-324, 1e-300, -1e-17, 0.0]))
    return anchor if place == "on" else math.nextafter(anchor, draw(st.sampled_from([-math.inf, math.inf])))


@st.composite
def score_lists(draw: st.DrawFn, size: int, reach: int) -> list[int]:
    """Scores of that many cells; now and then all equal, or equal in some of the cells."""
    kind = draw(st.sampled_from(["different", "different", "different", "any", "equal"]))
    if kind == "equal":
        return [draw(st.integers(-reach, reach))] * size
    unique = kind == "different" and size <= 2 * reach + 1
    return draw(st.lists(st.integers(-reach, reach), min_size=size, max_size=size, unique=unique))


@st.composite
def tables(draw: st.DrawFn, feature: int, reach: int) -> CategoryTable:
    categories = sorted(draw(st.sets(st.integers(0, 5), max_size=4)))
    scores = draw(score_lists(len(categories), reach))
    return CategoryTable(feature, categories, scores, draw(st.integers(-reach, reach)))


@st.composite
def thresholds(draw: st.DrawFn, terms: list[StepFunction | CategoryTable], row: list[float], reach: int) -> int:
    """A level that the row's score can cross under noise, mostly; often one that it can equal."""
    steps = [term for term in terms if isinstance(term, StepFunction)]
    base = sum(int(term.evaluate([row[term.feature]])[0]) for term in terms if isinstance(term, CategoryTable))
    lowest, highest = (base + sum(int(end(term.scores)) for term in steps) for end in (np.min, np.max))
    if draw(st.integers(0, 9)) == 9:
        return draw(st.sampled_from([lowest - 1, highest, highest + reach]))
    if draw(st.booleans()):
        return draw(st.integers(lowest, max(highest - 1, lowest)))
    reached = base + sum(int(draw(st.sampled_from(term.scores[:, 0].tolist()))) for term in steps)
    return max(min(reached, highest - 1), lowest)


@st.composite
def problems(
    draw: st.DrawFn, max_terms: int = 5, max_tables: int = 3, max_rows: int = 3, reaches: tuple[int, ...] = ()
) -> Problem:
    """A model with one to five step functions and up to three category tables, a noise and a few rows."""
    n_steps = draw(st.integers(1, max_terms) | st.integers(0 if max_tables else 1, max_terms))
    n_tables = draw(st.integers(0, max_tables))
    n_features = n_steps + n_tables + draw(st.integers(0, 1))
    noise = draw(noises(n_features))
    order = draw(st.permutations(range(n_features)))
    # a factor makes scores of a million without making the reduced support large
    reach = draw(st.sampled_from(reaches or (1, 2, 5, 5, 100, 3000)))
    factor = draw(st.sampled_from([1, 1, 1, 7, 10**6]))
    edges = {feature: draw(edge_lists(scale_of(noise, feature))) for feature in order[:n_steps]}
    terms: list[StepFunction | CategoryTable] = [
        StepFunction(feature, cuts, np.array(draw(score_lists(len(cuts) + 1, reach))) * factor)
        for feature, cuts in edges.items()
    ]
    category_terms = [draw(tables(feature, min(reach, 20))) for feature in order[n_steps : n_steps + n_tables]]
    terms += [
        CategoryTable(table.feature, table.categories, table.scores * factor, table.other * factor)
        for table in category_terms
    ]
    categorical = {table.feature for table in category_terms}
    codes = st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 99.0, math.nan])
    rows = [
        [
            draw(codes) if f in categorical else draw(positions(edges.get(f, []), scale_of(noise, f)))
            for f in range(n_features)
        ]
        for _ in range(draw(st.integers(1, max_rows)))
    ]
    threshold = draw(thresholds(terms, rows[0], reach))
    table_of_rows = np.array(rows, dtype=np.float64).reshape(len(rows), n_features)
    return Problem(AdditiveEnsemble(tuple(terms), threshold, n_features), table_of_rows, noise)
