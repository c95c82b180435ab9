"""Searching for what breaks a certificate: random models, and the worst change of a row, found by brute force.

Plain NumPy and SciPy; reads only the public fields of models and noises, shares no code with what it attacks. Whatever
it finds is a witness: a row inside the ball. Curves here are floats, good to some 1e-15 of a term's jumps.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import special

from derand import AdditiveEnsemble, CategoryTable, Gaussian, Laplace, Noise, StepFunction, Threat, Uniform

NORMS = (0, 1, 2, math.inf)
KINDS = (Gaussian, Laplace, Uniform)
_LEVELS = 96  # of the budget that several terms share
_ZOOM = 12  # finer levels on each side


@dataclass(frozen=True)
class Case:
    """What `certify` takes, and the numerical terms as plain arrays."""

    model: AdditiveEnsemble
    rows: np.ndarray
    noise: Noise | None
    threat: Threat
    steps: list[StepFunction] = field(default_factory=list)

    @property
    def units(self) -> np.ndarray:
        given = self.threat.units or (self.noise.units if self.noise is not None else None)
        return np.ones(self.model.n_features) if given is None else np.array(given)

    def scale(self, feature: int) -> float:
        assert self.noise is not None
        return self.noise.magnitude * (1.0 if self.noise.units is None else self.noise.units[feature])


def draw_edges(rng: np.random.Generator, count: int, centre: float, scale: float) -> np.ndarray:
    """Clustered, far apart, evenly spaced, or all of it."""
    kind = rng.integers(4)
    if kind == 0:
        edges = centre + scale * rng.normal(0.0, rng.choice([0.01, 0.3, 1.0]), count)
    elif kind == 1:
        edges = centre + scale * rng.uniform(-1.0, 1.0, count) * rng.choice([10.0, 40.0, 3000.0])
    elif kind == 2:
        edges = centre + scale * rng.choice([0.1, 1.0, 2.0, 7.0]) * np.arange(count)
    else:
        edges = centre + scale * rng.normal(size=count) * rng.choice([0.1, 1.0, 10.0, 100.0], count)
    return np.unique(edges)


def draw_scores(rng: np.random.Generator, count: int) -> np.ndarray:
    """Monotone or wild, of equal or of very different jumps; never all equal."""
    kind = rng.integers(4)
    if kind == 0:
        scores = np.cumsum(rng.integers(0, 6, count)) * rng.choice([-1, 1])
    elif kind == 1:
        scores = rng.integers(-9, 10, count)
    elif kind == 2:
        scores = rng.choice([0, 1, 2, 1000], count)
    else:
        scores = rng.integers(0, 2, count) * rng.integers(1, 60)
    if np.ptp(scores) == 0:
        scores[rng.integers(count)] += 1 + rng.integers(5)
    return np.asarray(scores)


def draw_case(
    rng: np.random.Generator,
    *,
    deployed: bool = False,
    max_terms: int = 4,
    max_edges: int = 8,
    n_rows: int = 3,
    norms: Sequence[float] = NORMS,
    own_ball: float = 0.3,
    most_tables: int = 2,
) -> Case:
    """A model of one to four terms, perhaps with category tables, rows, a noise and a threat.

    With probability `own_ball` the threat is the ball in the noise's own norm and units.
    """
    n_terms = int(rng.integers(1, max_terms + 1))
    n_tables = int(rng.choice([0, 0, rng.integers(most_tables + 1)]))
    n_features = n_terms + n_tables
    units = rng.choice([1.0, 1.0, 0.1, 1e-3, 50.0], n_features)
    magnitude = float(rng.choice([0.1, 0.25, 1.0, 3.7]))
    with_units = rng.random() < 0.6
    noise = None if deployed else KINDS[rng.integers(3)](magnitude, tuple(units.tolist()) if with_units else None)
    scales = magnitude * (units if with_units else np.ones(n_features))
    order = rng.permutation(n_features)
    factor, dominating = int(rng.choice([1, 1, 1, 7, 1000])), int(rng.choice([1, 1, 40]))
    steps = []
    for at, feature in enumerate(order[:n_terms]):
        centre = float(rng.choice([0.0, 0.0, 1.3, 2000.0, -1e5]))
        edges = draw_edges(rng, int(rng.integers(1, max_edges + 1)), centre, scales[feature])
        scores = draw_scores(rng, edges.size + 1) * factor * (dominating if at == 0 else 1)
        steps.append(StepFunction(int(feature), edges, scores))
    tables = [
        CategoryTable(int(feature), [0, 1, 2], rng.integers(-5, 6, 3) * factor, int(rng.integers(-5, 6)) * factor)
        for feature in order[n_terms:]
    ]
    rows = np.empty((n_rows, n_features))
    for feature in order[n_terms:]:
        rows[:, feature] = rng.choice([0.0, 1.0, 2.0, 9.0], n_rows)
    for step in steps:
        rows[:, step.feature] = [draw_place(rng, step.edges, scales[step.feature]) for _ in range(n_rows)]
    threshold = draw_threshold(rng, steps, tables, rows[0])
    error = float(rng.choice([0, 0, 0, 0, 1, 2.5])) * (factor if rng.random() < 0.3 else 1)
    model = AdditiveEnsemble((*steps, *tables), threshold, n_features, score_error=error)
    norm = rng.choice(norms)
    own = None
    if noise is not None and rng.random() < own_ball and noise.norm in norms:
        norm = noise.norm
    elif rng.random() < 0.4:
        own = tuple(rng.choice([1.0, 0.1, 3.0, 1e-3, 1e3], n_features).tolist())
    threat = Threat(norm=float(norm), units=own, l0=int(rng.integers(0, n_tables + 2)), unseen=bool(rng.integers(2)))
    return Case(model, rows, noise, threat, steps)


def draw_place(rng: np.random.Generator, edges: np.ndarray, scale: float) -> float:
    """A value near an edge, on it, one unit in the last place beside it, far outside, or very far."""
    anchor, kind = float(rng.choice(edges)), rng.integers(10)
    if kind < 6:
        return anchor + scale * float(rng.normal()) * float(rng.choice([0.2, 1.0, 4.0]))
    if kind == 6:
        return anchor
    if kind == 7:
        return math.nextafter(anchor, float(rng.choice([-math.inf, math.inf])))
    return anchor + scale * float(rng.choice([-1e6, -700.0, -45.0, -12.0, 9.0, 30.0, 1000.0, 1e6]))


def draw_threshold(
    rng: np.random.Generator, steps: Sequence[StepFunction], tables: Sequence[CategoryTable], row: np.ndarray
) -> int:
    """Near what the row scores, in the middle, or near the extremes."""
    base = sum(int(table.evaluate([row[table.feature]])[0]) for table in tables)
    lowest, highest = (base + sum(int(end(step.scores)) for step in steps) for end in (np.min, np.max))
    kind = rng.integers(5)
    if kind == 0:
        return int(rng.choice([lowest, lowest, highest - 1, highest, lowest - 1]))
    if kind == 1:
        return (lowest + highest) // 2
    if kind == 2:
        own = base + sum(int(step.evaluate([row[step.feature]])[0]) for step in steps)
        return own - int(rng.integers(0, 3))
    return int(rng.integers(lowest, highest + 1))


def distribute(noise: Noise, z: np.ndarray) -> np.ndarray:
    """P(noise <= z) for noise of magnitude 1."""
    if noise.name == "gaussian":
        return np.asarray(special.ndtr(z))
    if noise.name == "uniform":
        return np.clip(0.5 + 0.5 * z, 0.0, 1.0)
    tail = 0.5 * np.exp(-np.abs(z))
    return np.where(z > 0, 1.0 - tail, tail)


def smooth(case: Case, step: StepFunction, z: np.ndarray) -> np.ndarray:
    """The expected score of one term at each value."""
    scores = step.scores[:, 0].astype(np.float64)
    if case.noise is None:
        return np.asarray(scores[np.searchsorted(step.edges, z, side="right")])
    below = distribute(case.noise, (z[:, None] - step.edges) / case.scale(step.feature))
    # added up from the side that is nearer: a term of huge jumps keeps its digits there
    left = scores[0] + below @ np.diff(scores)
    right = scores[-1] - distribute(case.noise, -(z[:, None] - step.edges) / case.scale(step.feature)) @ np.diff(scores)
    return np.where(z < step.edges.mean(), left, right)


def expect(case: Case, rows: np.ndarray) -> np.ndarray:
    """The expected score of whole rows."""
    total = np.zeros(rows.shape[0])
    for term in case.model.terms:
        if isinstance(term, StepFunction):
            total += smooth(case, term, rows[:, term.feature])
        else:
            total += term.evaluate(rows[:, term.features[0]])
    return total


def fuzz(case: Case) -> float:
    """By how much a float sum of curves may be off."""
    size = sum(float(np.abs(step.scores).max() + np.abs(np.diff(step.scores[:, 0])).sum()) for step in case.steps)
    return 1e-13 * (size + abs(case.model.threshold or 0))


def worsen_categories(case: Case, row: np.ndarray, label: int) -> np.ndarray:
    """The row after the worst change of categories that the threat allows: all changes are tried."""
    tables = case.model.category_tables
    best, worst = row, math.inf
    for count in range(min(case.threat.l0, len(tables)) + 1):
        for changed in itertools.combinations(tables, count):
            for codes in itertools.product([0.0, 1.0, 2.0, *([9.0] if case.threat.unseen else [])], repeat=count):
                now = row.copy()
                for table, code in zip(changed, codes, strict=True):
                    now[table.feature] = code
                total = sum(int(table.evaluate([now[table.feature]])[0]) for table in tables)
                total = total if label else -total
                if total < worst:
                    best, worst = now, total
    return best


@dataclass(frozen=True)
class Frontier:
    """What one term can be brought to: ever farther away, ever lower (for label 0 ever higher, with its sign)."""

    far: np.ndarray
    low: np.ndarray
    z: np.ndarray

    def within(self, distance: float) -> int:
        return int(np.searchsorted(self.far, distance, side="right")) - 1


def find_frontier(case: Case, step: StepFunction, x: float, label: int, radius: float, points: int = 384) -> Frontier:
    """Values of one term within a distance, by a dense search, refined about the lowest ones."""
    unit = case.units[step.feature]
    sign = 1.0 if label else -1.0
    scale = np.ptp(step.edges) / 4 + 1e-3 * unit if case.noise is None else case.scale(step.feature)
    if math.isfinite(radius):
        reach = radius * unit
        offsets = reach * np.concatenate([np.linspace(-1, 1, points), [0.0], [-1.0, 1.0]])
        offsets = np.concatenate([offsets, reach * np.geomspace(1e-9, 1, 40), -reach * np.geomspace(1e-9, 1, 40)])
    else:
        reach = math.inf
        offsets = np.zeros(1)
    places = np.concatenate(
        [(step.edges[:, None] + scale * np.linspace(-9, 9, 91)).ravel(), step.edges, step.edges - 1e6 * scale]
    )
    middles = (step.edges[1:] + step.edges[:-1]) / 2
    z = np.concatenate([x + offsets, places, middles, step.edges + 1e6 * scale, np.nextafter(step.edges, -np.inf)])
    z = z[np.abs(z - x) <= reach]
    for width in (scale / 5, scale / 100):  # finer about the lowest values so far
        best = z[np.argsort(sign * smooth(case, step, z))[:2]]
        finer = (best[:, None] + width * np.linspace(-1, 1, 41)).ravel()
        z = np.concatenate([z, finer[np.abs(finer - x) <= reach]])
    values, far = sign * smooth(case, step, z), np.abs(z - x) / unit
    order = np.lexsort((values, far))
    values, far, z = values[order], far[order], z[order]
    lowest = np.minimum.accumulate(values)
    keep = np.append(True, lowest[1:] < lowest[:-1])
    return Frontier(far[keep], values[keep], z[keep])


def worsen(case: Case, row: np.ndarray, label: int, radius: float) -> np.ndarray:
    """The worst row that was found within the radius of the threat's norm: a witness, not a bound."""
    now = worsen_categories(case, row, label)
    norm = float(case.threat.norm)
    if norm == 0:
        fronts = [find_frontier(case, step, row[step.feature], label, math.inf) for step in case.steps]
        falls = np.array([front.low[0] - front.low[-1] for front in fronts])
        count = len(fronts) if math.isinf(radius) else int(radius)
        for at in np.argsort(-falls)[:count]:
            now[case.steps[at].feature] = fronts[at].z[-1]
        return now
    fronts = [find_frontier(case, step, row[step.feature], label, radius) for step in case.steps]
    if math.isinf(norm) or math.isinf(radius):
        for step, front in zip(case.steps, fronts, strict=True):
            now[step.feature] = front.z[-1]
        return now
    unit = radius**norm / _LEVELS
    shares = _share(fronts, norm, np.zeros(len(fronts)), unit, _LEVELS, _LEVELS)
    shares = _share(fronts, norm, shares - 2 * unit, unit * 2 / _ZOOM, 2 * _ZOOM, _ZOOM * len(fronts))
    for step, front, share in zip(case.steps, fronts, shares, strict=True):
        side = np.sign(front.z[front.within(share ** (1 / norm))] - row[step.feature])
        far = share ** (1 / norm) * case.units[step.feature]
        ends = np.array([front.z[front.within(share ** (1 / norm))], row[step.feature] + side * far])
        values = smooth(case, step, ends) * (1 if label else -1)
        now[step.feature] = ends[int(values[1] < values[0])]
    return now


def _share(
    fronts: list[Frontier], norm: float, starts: np.ndarray, unit: float, levels: int, budget: int
) -> np.ndarray:
    """How a budget of whole levels is best shared among terms, all ways tried; what each term may spend."""
    total, choices = np.zeros(1), []
    for front, start in zip(fronts, starts, strict=True):
        spends = start + unit * np.arange(levels + 1)
        far = np.maximum(spends, 0.0) ** (1 / norm)
        at = np.searchsorted(front.far, far, side="right") - 1
        low = np.where(spends < -1e-12 * unit, np.inf, front.low[np.maximum(at, 0)])
        size = min(total.size + levels, budget + 1)
        sums = np.full((size, levels + 1), np.inf)
        for spent in range(levels + 1):
            stop = min(size, spent + total.size)
            if stop > spent:
                sums[spent:stop, spent] = total[: stop - spent] + low[spent]
        choices.append(np.argmin(sums, axis=1))
        total = sums[np.arange(size), choices[-1]]
    at, shares = int(np.argmin(total)), np.zeros(len(fronts))
    for i in range(len(fronts) - 1, -1, -1):
        spent = int(choices[i][at])
        shares[i] = max(starts[i] + unit * spent, 0.0)
        at -= spent
    return shares


def is_inside(case: Case, row: np.ndarray, moved: np.ndarray, radius: float) -> bool:
    """Whether the numerical part of a move is in the open ball, in long doubles."""
    columns = [step.feature for step in case.steps]
    change = np.abs(moved[columns].astype(np.longdouble) - row[columns].astype(np.longdouble)) / case.units[columns]
    norm = float(case.threat.norm)
    if norm == 0:
        return int((change > 0).sum()) <= radius
    size = change.max() if math.isinf(norm) else (change**norm).sum() ** (np.longdouble(1) / np.longdouble(norm))
    return bool(size * (1 + np.longdouble(1e-17)) < radius)


def find_witnesses(
    case: Case, row: np.ndarray, label: int, radius: float, shrinks: Sequence[float] = (0.999, 1 - 1e-9)
) -> Iterator[np.ndarray]:
    """The worst rows strictly inside the ball, one for each factor of the radius."""
    for shrink in shrinks:
        inner = radius if case.threat.norm == 0 or math.isinf(radius) else radius * shrink
        moved = worsen(case, row, label, inner)
        if is_inside(case, row, moved, radius):
            yield moved


def find_cells(case: Case, row: np.ndarray, label: int) -> float:
    """The exact radius of the model as deployed: every combination of cells, after the worst change of categories."""
    now = worsen_categories(case, row, label)
    fixed = sum(int(table.evaluate([now[table.feature]])[0]) for table in case.model.category_tables)
    shift = math.ceil(case.model.score_error) * (-1 if label else 1)
    norm = float(case.threat.norm)
    totals, costs = np.array([fixed + shift], dtype=np.int64), np.zeros(1)
    for step in case.steps:
        x, unit = row[step.feature], case.units[step.feature]
        starts, stops = np.append(-np.inf, step.edges), np.append(step.edges, np.inf)
        far = np.maximum(np.maximum(starts - x, x - stops), 0.0) / unit
        if norm == 0:
            own = int(np.searchsorted(step.edges, x, side="right"))
            price = (np.arange(far.size) != own).astype(np.float64)
        else:
            price = far if math.isinf(norm) else far**norm
        totals = (totals[:, None] + step.scores[:, 0]).ravel()
        costs = (np.maximum if math.isinf(norm) else np.add)(costs[:, None], price).ravel()
    flipped = totals <= case.model.threshold if label else totals > case.model.threshold
    least = float(costs[flipped].min()) if flipped.any() else math.inf
    if norm == 0:
        return max(least - 1, 0.0)
    return least if math.isinf(norm) else least ** (1 / norm)


def fail(case: Case, rows: np.ndarray, label: int, error: int = 0) -> np.ndarray:
    """The mass on the other side of the threshold, all cells enumerated; every score may be off by an error."""
    assert case.noise is not None
    shift = sum((table.evaluate(rows[:, table.feature]) for table in case.model.category_tables), start=0)
    sums, masses = np.zeros(1, dtype=np.int64), np.ones((rows.shape[0], 1))
    for step in case.steps:
        z = (rows[:, [step.feature]] - step.edges) / case.scale(step.feature)
        below, above = distribute(case.noise, -z), distribute(case.noise, z)  # of noise beyond each edge
        ends = [np.zeros((rows.shape[0], 1)), np.ones((rows.shape[0], 1))]
        low, high = np.hstack([ends[0], below, ends[1]]), np.hstack([ends[1], above, ends[0]])
        cells = np.where(low[:, 1:] < 0.5, np.diff(low, axis=1), -np.diff(high, axis=1))
        grown = (sums[:, None] + step.scores[:, 0]).ravel()
        sums, where = np.unique(grown, return_inverse=True)
        products = (masses[:, :, None] * cells[:, None, :]).reshape(rows.shape[0], -1)
        order = np.argsort(where, kind="stable")
        firsts = np.searchsorted(where[order], np.arange(sums.size))
        masses = np.add.reduceat(products[:, order], firsts, axis=1)
    total = sums + np.reshape(shift, (-1, 1)) + (-error if label else error)
    wrong = total <= case.model.threshold if label else total > case.model.threshold
    return np.asarray((masses * wrong).sum(axis=1))


def find_votes(case: Case, row: np.ndarray, label: int, radius: float, rng: np.random.Generator) -> np.ndarray:
    """Rows strictly inside the ball in which most of the noise may be on the other side, the likeliest first."""
    shrinks = (0.999,) if case.threat.norm == 0 else (1 - 1e-9, 0.9)
    tried = list(find_witnesses(case, row, label, radius, shrinks))
    norm, columns = float(case.threat.norm), [step.feature for step in case.steps]
    changed = worsen_categories(case, row, label)
    if norm == 0:
        fronts = [find_frontier(case, step, row[step.feature], label, math.inf) for step in case.steps]
        for chosen in itertools.combinations(range(len(columns)), int(min(radius, len(columns)))):
            moved = changed.copy()
            for at in chosen:
                moved[columns[at]] = fronts[at].z[-1]
            tried.append(moved)
    else:
        size = min(radius, 1e4 * max(case.scale(column) / case.units[column] for column in columns))
        ways = np.concatenate([rng.normal(size=(24, len(columns))), np.eye(len(columns)), -np.eye(len(columns))])
        ways = (
            np.concatenate([ways, list(itertools.product([-1.0, 1.0], repeat=min(len(columns), 4)))])
            if len(columns) <= 4
            else np.concatenate([ways, np.ones((1, len(columns))), -np.ones((1, len(columns)))])
        )
        tried += _step(case, row, changed, ways, size, radius)
        for spread in (0.3, 0.03):
            best = np.array(tried)[np.argsort(-fail(case, np.array(tried), label))[:1]]
            way = (best[:, columns] - row[columns]) / case.units[columns] / size
            tried += _step(case, row, changed, way + spread * rng.normal(size=(24, len(columns))), size, radius)
    if not tried:
        return np.empty((0, row.size))
    rows = np.array(tried)
    return np.asarray(rows[np.argsort(-fail(case, rows, label))])


def _step(
    case: Case, row: np.ndarray, changed: np.ndarray, ways: np.ndarray, size: float, radius: float
) -> list[np.ndarray]:
    columns = [step.feature for step in case.steps]
    lengths = np.linalg.norm(ways, ord=float(case.threat.norm), axis=1)
    moved = np.tile(changed, (len(ways), 1))
    moved[:, columns] = row[columns] + ways / lengths[:, None] * size * (1 - 1e-9) * case.units[columns]
    return [one for one in moved if is_inside(case, row, one, radius)]
