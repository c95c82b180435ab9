"""Terms as functions of real values and back: nothing is lost on a grid of a power of two."""

from __future__ import annotations

import numpy as np
import pytest

from derand import AdditiveEnsemble
from derand.model import CategoryShape, GridShape, Line, Shape, TreeShape, read_shapes


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_shapes_of_terms_make_the_same_terms(n_outputs: int) -> None:
    rng = np.random.default_rng(n_outputs)

    def draw(*shape: int) -> np.ndarray:
        return rng.normal(size=shape if n_outputs == 1 else (*shape, n_outputs))

    one = (lambda: float(rng.normal())) if n_outputs == 1 else (lambda: rng.normal(size=n_outputs))
    model = AdditiveEnsemble.from_shapes(
        [Shape(0, np.array([-1.0, 0.5]), draw(3), one()), Shape(4, np.array([0.25]), draw(2))],
        [CategoryShape(1, np.arange(4), draw(4), one(), one())],
        intercept=one(),
        n_features=7,
        levels=2**30,
        trees=[
            TreeShape(
                *map(np.array, ([0], [5, 6], [0.5, 0.0], [-1, -2], [1, -3])),
                rng.normal(size=(3, n_outputs)),
                np.array([True, False]),
                np.array([1]),
                (np.array([-1, 1]),),
                ((6, 3),),
                (),
                rounding=0.25,
            )
        ],
        grids=[GridShape((2, 3), (np.array([0.0]), np.array([-2.0, 1.0])), draw(3, 3), (True, False))],
    )
    found = read_shapes(model.terms, model.levels)
    assert [len(part) for part in found] == [2, 1, 1, 0, 1]
    offsets = np.zeros(n_outputs) if n_outputs > 1 else 0.0
    again = AdditiveEnsemble.from_shapes(
        found.shapes,
        found.tables,
        intercept=offsets,
        n_features=7,
        levels=model.levels,
        grids=found.grids,
        trees=found.trees,
    )
    rows = rng.normal(size=(500, 7)) * 2
    rows[:, [1, 6]] = rng.integers(-1, 5, size=(500, 2))
    rows[rng.random(500) < 0.2, 5] = np.nan
    rows[rng.random(500) < 0.2, 6] = np.nan
    rows[rng.random(500) < 0.2, 0] = np.nan
    rows[rng.random(500) < 0.2, 1] = np.nan
    rows[rng.random(500) < 0.2, 2] = np.nan
    np.testing.assert_array_equal(again.score(rows), model.score(rows))
    least, most = model.bound_errors(rows), again.bound_errors(rows)
    assert (least <= most).all()
    assert (most <= least * (1 + 1e-9)).all()


def test_lines_keep_slopes_and_errors() -> None:
    model = AdditiveEnsemble.from_shapes(
        [], lines=[Line(0, 1.5, 2.0**-20)], intercept=0.5, n_features=1, levels=2**30, arithmetic_error=0.0
    )
    (line,) = read_shapes(model.terms, model.levels).lines
    assert float(np.squeeze(line.slope)) == 1.5
    assert float(np.squeeze(line.error)) >= 2.0**-20
