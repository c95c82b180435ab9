"""Small models of every library that has trees, against their own `predict` at every cell: no claim may be wrong.

    python scripts/check_library_trees.py --models 2000 --seed 0     # of each library; about an hour on one core

Tables have numbers, missing values, whole numbers and a category; threats have limits, steps, frozen columns, budgets
and balls of every norm. A cell is asked at both of its ends. Exit code 1 where a verdict, a radius or an interval is
wrong, or where what is claimed to be exact is not.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from derand import Threat, from_model
from derand.fitted import encode_rows
from derand.perturbation import Perturbation, resolve

WORDS = ("p", "q", "r", "s")
COLUMNS, CATEGORY = ("first", "gaps", "whole", "word"), 3
N_ROWS, N_ASKED, MOST_POINTS = 80, 3, 4_000
NORMS = (None, None, math.inf, 1.0, 2.0, 0.0)


class Case(NamedTuple):
    """A fitted model, the rows that are asked about, and what the library refuses."""

    fitted: Any
    rows: pd.DataFrame
    takes_unseen: bool
    n_classes: int
    """0 for numbers."""


def _xgboost(rng: np.random.Generator, n_classes: int) -> Any:
    from xgboost import XGBClassifier, XGBRegressor, XGBRFClassifier

    options: dict[str, Any] = {"n_jobs": 1, "enable_categorical": True, "max_cat_to_onehot": int(rng.integers(1, 6))}
    options |= {"n_estimators": int(rng.integers(1, 6)), "max_depth": int(rng.integers(2, 4)), "min_child_weight": 0}
    if n_classes == 0:
        return XGBRegressor(**options)
    if rng.random() < 0.2:
        return XGBRFClassifier(**options, colsample_bynode=0.7, random_state=int(rng.integers(99)))
    if rng.random() < 0.3:
        options |= {"booster": "dart", "rate_drop": 0.5, "scale_pos_weight": 1.5} if n_classes == 2 else {}
    return XGBClassifier(**options)


def _lightgbm(rng: np.random.Generator, n_classes: int) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    options: dict[str, Any] = {"n_jobs": 1, "verbose": -1, "min_child_samples": 3, "min_data_per_group": 3}
    options |= {"n_estimators": int(rng.integers(1, 6)), "num_leaves": int(rng.integers(3, 8)), "cat_smooth": 0.5}
    options |= {"min_data_in_bin": 1, "boost_from_average": bool(rng.integers(2)), "max_cat_to_onehot": 2, "cat_l2": 0}
    options |= {"zero_as_missing": True} if rng.random() < 0.2 else {}
    return (LGBMClassifier if n_classes else LGBMRegressor)(**options)


def _catboost(rng: np.random.Generator, n_classes: int) -> Any:
    from catboost import CatBoostClassifier, CatBoostRegressor

    policy = ["SymmetricTree", "Depthwise", "Lossguide"][int(rng.integers(3))]
    options: dict[str, Any] = {"verbose": 0, "allow_writing_files": False, "thread_count": 1, "grow_policy": policy}
    options |= {"iterations": int(rng.integers(1, 5)), "depth": int(rng.integers(2, 4)), "learning_rate": 0.5}
    options |= {"nan_mode": ["Min", "Max"][int(rng.integers(2))], "border_count": 4, "random_seed": 0}
    inner = (CatBoostClassifier if n_classes else CatBoostRegressor)(**options)
    return _encode(inner)


def _sklearn(rng: np.random.Generator, n_classes: int) -> Any:
    size, depth, seed = int(rng.integers(1, 5)), int(rng.integers(2, 4)), int(rng.integers(99))
    if n_classes == 0:
        forest = RandomForestRegressor(size, max_depth=depth, random_state=seed)
        return _encode(forest) if rng.random() < 0.5 else _histogram(HistGradientBoostingRegressor, size, depth)
    trees = {
        "forest": RandomForestClassifier(size, max_depth=depth, random_state=seed),
        "extra": ExtraTreesClassifier(size, max_depth=depth, random_state=seed),
        "boosting": GradientBoostingClassifier(n_estimators=size, max_depth=depth, random_state=seed),
        "tree": DecisionTreeClassifier(max_depth=depth, random_state=seed),
        "ada": AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=size, random_state=seed),
    }
    name = [*trees, "histogram", "histogram"][int(rng.integers(7))]
    if name == "histogram":
        return _histogram(HistGradientBoostingClassifier, size, depth)
    return _encode(trees[name], fill=name in ("boosting", "ada"))


def _histogram(kind: Any, size: int, depth: int) -> Any:
    return kind(categorical_features="from_dtype", max_iter=size, max_depth=depth, min_samples_leaf=3, max_bins=6)


def _ebm(rng: np.random.Generator, n_classes: int) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    every = list(itertools.combinations(range(4), 2))
    pairs = [every[at] for at in rng.choice(len(every), int(rng.integers(1, 5)), replace=False)]
    options: dict[str, Any] = {
        "outer_bags": 1, "max_rounds": 8, "n_jobs": 1, "max_bins": 5, "max_interaction_bins": 4, "learning_rate": 0.3,
        "interactions": pairs if n_classes < 3 else 0, "min_samples_leaf": 2, "validation_size": 0.2,
        "feature_types": ["continuous"] * 3 + ["nominal"], "random_state": int(rng.integers(99)),
    }  # fmt: skip
    return (ExplainableBoostingClassifier if n_classes else ExplainableBoostingRegressor)(**options)


def _encode(inner: Any, fill: bool = False) -> Any:
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    steps: list[Any] = [make_column_transformer((encoder, ["word"]), remainder="passthrough")]
    if fill:
        from sklearn.impute import SimpleImputer

        steps.append(SimpleImputer(strategy="median"))
    return make_pipeline(*steps, inner)


LIBRARIES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
    "catboost": _catboost,
    "sklearn": _sklearn,
    "interpret": _ebm,
}


def draw_case(library: str, seed: int) -> Case:
    """A fitted model of a library, and rows, some of which it was not trained on."""
    rng = np.random.default_rng([seed, list(LIBRARIES).index(library)])
    n_classes = [2, 2, 2, 2, 3, 0][int(rng.integers(6))]
    table, score = _draw_table(rng, N_ROWS)
    y = (
        np.round(score, 1)
        if n_classes == 0
        else np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)
    )
    fitted = LIBRARIES[library](rng, n_classes).fit(table, y)
    rows, _ = _draw_table(rng, N_ASKED)
    return Case(fitted, rows, library != "xgboost", n_classes)


def _draw_table(rng: np.random.Generator, n_rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    words = rng.integers(0, len(WORDS), n_rows)
    scale = float(10.0 ** rng.integers(-2, 3))
    first = np.round(rng.normal(size=n_rows) * 2) / 4 * scale
    gaps, whole = rng.normal(size=n_rows), rng.integers(-3, 4, n_rows).astype(float)
    score = first / scale * np.where(words > 1, 1, -1) + gaps * whole / 3 + rng.normal(size=n_rows) * 0.2
    gaps[rng.random(n_rows) < 0.15] = np.nan
    word = pd.Categorical.from_codes(words, list(WORDS))
    return pd.DataFrame({"first": first, "gaps": gaps, "whole": whole, "word": word}), score


def draw_threat(rng: np.random.Generator, case: Case, model: Any) -> Threat:
    """Limits, steps, frozen columns, budgets of categories and missing values, and a norm."""
    norm = NORMS[int(rng.integers(len(NORMS)))]
    frozen = [name for name in COLUMNS if rng.random() < 0.15]
    given: dict[str, Any] = {"norm": norm, "l0": int(rng.integers(2)), "frozen": frozen}
    given["unseen"] = case.takes_unseen and bool(rng.integers(2))
    if norm is None or rng.random() < 0.4:
        given["limits"] = {"*": ["30%", 0.7, 2.0, (0.2, 1.5), 50.0][int(rng.integers(5))]}
    if norm is not None:
        given["units"] = rng.choice([0.5, 1.0, 3.0], len(COLUMNS)).tolist()
    if rng.random() < 0.3 and "whole" not in frozen:
        given["steps"] = {"whole": 1.0}
    if model.ensemble_.has_trees and model.ensemble_.missing_features and rng.random() < 0.4:
        given["missing"] = 1
    return Threat(**given)


class Points(NamedTuple):
    """Every cell that a row can be changed to: a point of each, how far away it is, and which row it belongs to."""

    rows: np.ndarray
    distance: np.ndarray


def list_points(model: Any, row: np.ndarray, threat: Threat, asked: Perturbation) -> Points | None:
    """A point of each cell at its nearest end; None where these are too many."""
    edges: dict[int, np.ndarray] = {}
    for axis in (axis for term in model.ensemble_.terms for axis in term.axes):
        there = axis.edges[axis.edges > -1e300]  # below others no number lies
        edges[axis.feature] = np.union1d(edges.get(axis.feature, []), there)
    low, high = (end[0] for end in asked.box(row[None]))
    options = [
        list(_list_states(at, row[at], low[at], high[at], edges.get(at, np.empty(0)), asked, model))
        for at in range(CATEGORY)
    ]
    options.append(list(_list_codes(float(row[CATEGORY]), asked, len(WORDS))))
    if math.prod(map(len, options)) > MOST_POINTS:
        return None
    points, distance = [], []
    for states in itertools.product(*options):
        if sum(gone for _, _, gone in states[:CATEGORY]) > asked.missing_budget or states[CATEGORY][2] > asked.l0:
            continue
        points.append([value for value, _, _ in states])
        sizes = np.array([size for _, size, _ in states[:CATEGORY]]) / asked.units[:CATEGORY]
        distance.append(float(np.linalg.norm(sizes, threat.norm)) if threat.norm is not None else 0.0)
    return Points(np.array(points), np.array(distance))


def _list_states(
    at: int, own: float, low: float, high: float, edges: np.ndarray, asked: Perturbation, model: Any
) -> Iterator[tuple[float, float, int]]:
    """What a number may become: the value, how far it moves, and whether it went missing or appeared."""
    yield own, 0.0, 0
    may_miss = at in model.ensemble_.missing_features and at not in asked.frozen and asked.missing_budget > 0
    if np.isnan(own):
        if may_miss:
            for value in (-1e9, *edges, *np.nextafter(edges, -np.inf)):
                yield float(value), 0.0, 1
        return
    if may_miss:
        yield math.nan, 0.0, 1
    if asked.steps[at] > 0:
        reach = np.arange(-60, 61) * asked.steps[at] + own
        values = reach[(reach >= low) & (reach <= high) & (reach != own)]
    else:
        above, below = edges[edges > own], np.nextafter(edges[edges <= own], -np.inf)
        values = np.concatenate([above[above <= high], below[below >= low]])
    for value in values.tolist():
        yield value, abs(value - own), 0


def _list_codes(own: float, asked: Perturbation, count: int) -> Iterator[tuple[float, float, int]]:
    yield own, 0.0, 0
    if asked.l0 and CATEGORY not in asked.frozen:
        for code in (*range(count), *((-1.0, math.nan) if asked.unseen else ())):
            yield float(code), 0.0, 1


def decode(points: np.ndarray, model: Any) -> pd.DataFrame:
    """The same in the words of the table; a category that training did not see is one of its own."""
    table = pd.DataFrame({name: points[:, at] for at, name in enumerate(COLUMNS[:CATEGORY])})
    known = model.encoding_.categories.get(CATEGORY, WORDS)
    values = np.array([*known, "other", None], dtype=object)
    codes = points[:, CATEGORY]
    at = np.where(np.isnan(codes), len(known) + 1, np.where(codes < 0, len(known), codes)).astype(int)
    dtype = pd.CategoricalDtype([*WORDS, "other"] if (codes < 0).any() else list(WORDS))
    return table.assign(word=pd.Series(values[at]).astype(dtype))


class FaultError(Exception):
    """A claim that the library denies."""


def require(is_true: bool, what: str) -> None:
    if not is_true:
        raise FaultError(what)


def check_case(library: str, seed: int, seen: Counter[str]) -> None:
    """One model, one threat: every claim about its rows."""
    case = draw_case(library, seed)
    model = from_model(case.fitted)
    seen["trees" if model.ensemble_.has_trees else "functions"] += 1
    rng = np.random.default_rng([seed, 7])
    threat = draw_threat(rng, case, model)
    named = model._name_threat(threat) if hasattr(model, "_name_threat") else threat
    by_number = named.name_columns(model.encoding_.names, model.encoding_.categories, model.units)
    asked = resolve(by_number, model.ensemble_, None)
    rows = encode_rows(model, case.rows)
    every = [list_points(model, row, by_number, asked) for row in rows]
    known = [at for at, points in enumerate(every) if points is not None]
    if not known:
        seen["too many cells"] += 1
        return
    chosen = case.rows.iloc[known]
    points = [one for one in every if one is not None]
    answers = np.split(
        np.ravel(case.fitted.predict(decode(np.concatenate([one.rows for one in points]), model))),
        np.cumsum([len(one.rows) for one in points])[:-1],
    )
    if case.n_classes == 0:
        _check_numbers(model, chosen, threat, points, answers, seen)
    elif threat.norm is None:
        _check_verdicts(case, model, chosen, threat, answers, seen)
    else:
        _check_radii(case, model, chosen, threat, points, answers, seen)


def _check_verdicts(
    case: Case, model: Any, rows: pd.DataFrame, threat: Threat, answers: Sequence[np.ndarray], seen: Counter[str]
) -> None:
    c = model.certify(rows, threat=threat)
    ties = np.zeros(len(rows), dtype=bool) if c.is_tie is None else c.is_tie
    for at, own in enumerate(answers):
        truth = "flips" if (own != own[0]).any() else "holds"
        seen[f"verdict {c.verdict[at]}"] += 1
        if not ties[at]:
            require(c.label[at] == own[0], "label")
            is_exact = model.ensemble_.has_trees  # functions of few columns may leave a row open
            require(not is_exact or c.verdict[at] == truth, f"verdict {c.verdict[at]}, truth {truth}")
        require(c.verdict[at] in (truth, "undecided"), f"verdict {c.verdict[at]}, truth {truth}")
    _check_witnesses(case, model, c, np.flatnonzero(c.verdict == "flips"), seen)


def _check_witnesses(case: Case, model: Any, c: Any, at: np.ndarray, seen: Counter[str]) -> None:
    if at.size:
        changed = np.ravel(case.fitted.predict(decode(c.witness[at], model)))
        require(bool((changed != c.label[at]).all()), "witness")
        seen["witnesses"] += at.size


def _check_radii(
    case: Case,
    model: Any,
    rows: pd.DataFrame,
    threat: Threat,
    points: Sequence[Points],
    answers: Sequence[np.ndarray],
    seen: Counter[str],
) -> None:
    c = model.certify(rows, threat=threat)
    attacked = np.full(len(rows), np.nan) if c.attacked is None else c.attacked
    for at, (own, there) in enumerate(zip(answers, points, strict=True)):
        nearest = there.distance[own != own[0]].min(initial=math.inf)
        radius, truth = c.radius[at], nearest - 1 if threat.norm == 0 else nearest
        seen["radii"] += 1
        require(radius <= max(truth, 0) * (1 + 1e-12), f"radius {radius}, truth {truth}, norm {threat.norm}")
        if not np.isnan(attacked[at]):
            require(attacked[at] >= nearest * (1 - 1e-9) - 1e-300, f"attacked {attacked[at]}, truth {nearest}")
        if c.is_exact is not None and c.is_exact[at]:
            seen["exact radii"] += 1
            require(radius >= max(truth, 0) * (1 - 1e-9) - 1e-14, f"exact radius {radius}, truth {truth}")
    if c.attacked is not None:
        _check_witnesses(case, model, c, np.flatnonzero(np.isfinite(c.attacked)), seen)


def _check_numbers(
    model: Any, rows: pd.DataFrame, threat: Threat, points: Sequence[Points], answers: Sequence[np.ndarray], seen: Any
) -> None:
    radius = None if threat.norm is None else (1 if threat.norm == 0 else 0.8)
    c = model.certify_interval(rows, radius, threat=threat)
    for at, (own, there) in enumerate(zip(answers, points, strict=True)):
        inside = np.ones(len(own), dtype=bool) if radius is None else there.distance < radius
        if threat.norm == 0:
            inside = there.distance <= 1
        inside[0] = True
        seen["intervals"] += 1
        least, most = own[inside].min(), own[inside].max()
        require(c.low[at] <= least and most <= c.high[at], f"[{c.low[at]}, {c.high[at]}], truth [{least}, {most}]")
        slack = 1e-3 * (1 + abs(float(c.high[at])))
        if model.ensemble_.has_trees and (radius is None or threat.norm == 0):
            require(c.low[at] >= least - slack and c.high[at] <= most + slack, "a wide interval")


def check_many(library: str, seeds: range, seen: Counter[str]) -> list[str]:
    """Check models of a library; the faults that were found."""
    faults = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            seen["models"] += 1
            try:
                check_case(library, seed, seen)
            except FaultError as fault:
                faults.append(f"{library}, seed {seed}: {fault}")
                print(faults[-1], file=sys.stderr, flush=True)
            except ValueError as error:
                if "answers otherwise" in str(error):
                    faults.append(f"{library}, seed {seed}: {error}")
                seen[f"refused: {str(error)[:60]}"] += 1
    return faults


def main() -> int:
    """Check, print figures, and say whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--library", choices=list(LIBRARIES), action="append")
    given = parser.parse_args()
    faults = []
    for library in given.library or LIBRARIES:
        seen, started = Counter[str](), time.process_time()
        faults += check_many(library, range(given.seed, given.seed + given.models), seen)
        figures = ", ".join(f"{name} {count:,}" for name, count in sorted(seen.items()))
        print(f"{library}: {figures}; {time.process_time() - started:.0f} s", flush=True)
    print(f"faults {len(faults)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
