"""Labels, failure masses and radii of many models in one file, to hold a change of the code to the last bit.

    python scripts/certificate_snapshot.py write before.npz      # with the code as it was
    python scripts/certificate_snapshot.py compare before.npz    # with the code as it is

Golden models (where the shared folder is present) and 300 random ones: three noises, with and without units, budgets of
0 to 2 categorical changes, votes. Bits may differ between machines: write and compare on the same one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from derand import AdditiveEnsemble, CategoryTable, Certificates, StepFunction, WeightedVote, certify
from derand.noise import NOISES, Noise
from tests.certificates import test_golden as golden

N_RANDOM = 300
FIELDS = ("label", "failure", "log_failure", "radius")


def walk_golden() -> Iterator[tuple[str, list[Certificates]]]:
    """Every published model over all of its published rows."""
    for name in [*golden.INDEPENDENT, *golden.BOOSTED]:
        model, _, rows, noise = golden.read_problem(name, "numba")
        ensemble = golden.build_stumps(model["stumps"], rows.shape[1])
        yield name, [certify(ensemble, rows, noise), *certify(ensemble, rows, noise, l0=[0, 2])]
    for name in golden.VOTES:
        model, _, rows, noise = golden.read_problem(name, "numba")
        members = [golden.build_stumps(member["stumps"], rows.shape[1]) for member in model["members"]]
        weights = np.array([member["weight"] for member in model["members"]])
        singles = [certify(member, rows, noise) for member in members]
        yield name, [certify(WeightedVote(members, weights), rows, noise), *singles]
    for name in golden.JOINT:
        model, numbers, rows, noise = golden.read_problem(name, "numba")
        ensemble = golden.build_joint(model, rows.shape[1])
        found = [certify(ensemble, rows, noise, l0=numbers["l0"].tolist(), unseen=unseen) for unseen in (False, True)]
        yield name, [*found[0], *found[1], certify(ensemble, rows, noise)]


def draw_terms(rng: np.random.Generator, features: np.ndarray, reach: int) -> list[StepFunction | CategoryTable]:
    """Step functions of one to six cells, and for every fourth feature a table."""
    terms: list[StepFunction | CategoryTable] = []
    for feature in features.tolist():
        if feature % 4 == 3:
            codes = np.sort(rng.choice(8, rng.integers(0, 5), replace=False))
            scores = rng.integers(-reach, reach + 1, codes.size)
            terms.append(CategoryTable(feature, codes, scores, int(rng.integers(-reach, reach + 1))))
        else:
            edges = np.unique(rng.normal(0, 1, rng.integers(0, 6) if rng.random() < 0.5 else 1))
            terms.append(StepFunction(feature, edges, rng.integers(-reach, reach + 1, edges.size + 1)))
    return terms


def draw_ensemble(rng: np.random.Generator, n_features: int) -> AdditiveEnsemble:
    size = int(rng.integers(1, n_features + 1))
    features = rng.permutation(n_features)[:size]
    terms = draw_terms(rng, features, int(rng.choice([1, 5, 40, 100, 3000])))
    centre = sum(int(term.scores.mean()) if term.scores.size else 0 for term in terms)
    return AdditiveEnsemble(terms, centre + int(rng.integers(-20, 21)), n_features)


def draw_noise(rng: np.random.Generator, number: int, n_features: int) -> Noise:
    kind = list(NOISES.values())[number % 3]
    units = tuple(rng.uniform(0.2, 5.0, n_features).tolist()) if rng.random() < 0.4 else None
    return kind(float(rng.choice([0.05, 0.25, 1.0, 3.0])), units)  # type: ignore[call-arg]


def walk_random() -> Iterator[tuple[str, list[Certificates]]]:
    """Models of 1 to 200 features, of which every fifth is a vote of two to twenty members."""
    for number in range(N_RANDOM):
        rng = np.random.default_rng(number)
        n_features = int(rng.choice([1, 3, 8, 20, 90, 200]))
        noise = draw_noise(rng, number, n_features)
        model: AdditiveEnsemble | WeightedVote = draw_ensemble(rng, n_features)
        if number % 5 == 4:
            members = [draw_ensemble(rng, n_features) for _ in range(rng.integers(2, 21))]
            model = WeightedVote(members, rng.normal(0.5, 1.0, len(members)))
        rows = rng.normal(0.0, 1.5, (int(rng.integers(1, 80)), n_features))
        categorical = np.arange(n_features) % 4 == 3
        rows[:, categorical] = rng.integers(0, 9, (len(rows), int(categorical.sum())))
        unseen = bool(rng.random() < 0.5)
        yield (
            f"random_{number}",
            [certify(model, rows, noise), *certify(model, rows, noise, l0=[0, 1, 2], unseen=unseen)],
        )


def collect() -> dict[str, np.ndarray]:
    found = {}
    for walk in (walk_golden, walk_random):
        for name, certificates in walk():
            for at, one in enumerate(certificates):
                found |= {f"{name}/{at}/{field}": np.asarray(getattr(one, field)) for field in FIELDS}
    return found


def compare(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> int:
    """Print how many values were compared; how many differ in a bit."""
    assert before.keys() == after.keys(), "other models were drawn"
    wrong = total = 0
    for name, values in before.items():
        assert (values.shape, values.dtype) == (after[name].shape, after[name].dtype), name
        differs = int((values.view(np.int64) != after[name].view(np.int64)).sum())
        if differs:
            print(f"{name}: {differs} of {values.size} differ")
        wrong, total = wrong + differs, total + values.size
    print(f"{total:,} values compared in {len(before):,} arrays, {wrong:,} differ")
    return wrong


def main() -> int:
    if len(sys.argv) != 3 or sys.argv[1] not in ("write", "compare"):
        print(__doc__)
        return 2
    found = collect()
    if sys.argv[1] == "write":
        np.savez_compressed(sys.argv[2], **found)
        print(f"{sum(values.size for values in found.values()):,} values written")
        return 0
    with np.load(sys.argv[2], allow_pickle=False) as arrays:
        return int(compare({name: arrays[name] for name in arrays.files}, found) > 0)


if __name__ == "__main__":
    sys.exit(main())
