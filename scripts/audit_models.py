"""Audit many models, forge their certificates, and say what a row costs.

    python scripts/audit_models.py [--rows 10] [--only WORD]

The published models (where the shared folder is present) under both rules, a model of every trainer on scikit-learn's
breast cancer under both rules and in every norm, models of several classes on its other tables, and random models of
growing size. For each of them `--rows` rows are audited, and five more times with a radius made 0.1 % larger: by the
paper's proof every one of these must be found; where prices per distance prove a radius, 0.1 % more may still be true,
and is then proven. Exit code 1 where a true claim is not proven, or where a forged one of the paper's proof is not
found.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression

from derand import AdditiveEnsemble, Audit, Gaussian, Noise, StepFunction, Threat, WeightedVote, audit, certify
from derand.certificates import Certificates
from derand.estimators import TRAINERS
from derand.fitted import encode_rows
from derand.model import Argmax, Model
from tests.certificates import test_golden as golden
from tests.shared import shared_folder

WAYS = {"vote, paper's proof": ("vote", "paper"), "vote": ("vote", "best"), "mean": ("mean", "best")}
SIZES = ((14, 2, 100), (30, 2, 100), (100, 2, 1000), (600, 2, 1000), (14, 250, 2000), (30, 150, 2000))
"""Terms, cells and levels of random models."""


@dataclass(frozen=True)
class Line:
    """One model, certified one way."""

    name: str
    way: str
    rows: int
    proven: int
    seconds: float
    slowest: float
    forged: int
    found: int
    is_vote: bool
    """Of ensembles, whose certificates do not name the proofs of their members."""

    @property
    def is_fault(self) -> bool:
        """Whether something true was not proven, or something forged not found where the proof has no gap."""
        return self.proven < self.rows or ("paper" in self.way and not self.is_vote and self.found < self.forged)


@dataclass(frozen=True)
class Case:
    """What is certified."""

    name: str
    model: Model
    rows: np.ndarray
    noise: Noise | None
    threat: Threat | None = None


def list_golden(count: int) -> Iterator[Case]:
    """Every published model on its first published rows."""
    for name in [*golden.INDEPENDENT, *golden.BOOSTED]:
        model, _, rows, noise = golden.read_problem(name, "numba")
        yield Case(name, golden.build_stumps(model["stumps"], rows.shape[1]), rows[:count], noise)
    for name in golden.JOINT:
        model, _, rows, noise = golden.read_problem(name, "numba")
        yield Case(f"{name}, l0 = 1", golden.build_joint(model, rows.shape[1]), rows[:count], noise, Threat(l0=1))
    for name in golden.VOTES:
        model, _, rows, noise = golden.read_problem(name, "numba")
        members = [golden.build_stumps(member["stumps"], rows.shape[1]) for member in model["members"]]
        weights = [member["weight"] for member in model["members"]]
        yield Case(name, WeightedVote(members, weights), rows[: max(1, count // 5)], noise)


def list_trained(count: int) -> Iterator[Case]:
    """A model of every trainer on scikit-learn's breast cancer, in every norm."""
    X, y = load_breast_cancer(return_X_y=True)
    for name, trainer in TRAINERS.items():
        classifier = trainer(scaling="standard").fit(X[:400], y[:400])
        rows = encode_rows(classifier, X[400 : 400 + count])
        for norm in (1, 2, math.inf):
            threat = Threat(norm=norm, units=classifier.units)
            yield Case(f"{name}, l{norm}", classifier.ensemble_, rows, classifier.noise_, threat)
        limits = dict.fromkeys(range(30), "5%")
        yield Case(
            f"{name}, 5 % limits", classifier.ensemble_, rows, classifier.noise_, Threat(norm=None, limits=limits)
        )


def list_classes(count: int) -> Iterator[Case]:
    """Models of three and ten classes: a logistic regression on columns in bins, whose weights are scores."""
    for load in (load_iris, load_wine, load_digits):
        X, y = load(return_X_y=True)
        edges = [np.unique(np.quantile(values, (0.2, 0.4, 0.6, 0.8))) for values in X.T]
        codes = [np.searchsorted(ends, values, side="right") for ends, values in zip(edges, X.T, strict=True)]
        ones = np.hstack([np.eye(ends.size + 1)[code] for ends, code in zip(edges, codes, strict=True)])
        fitted = LogisticRegression(C=0.3, max_iter=2000).fit(ones, y)
        cells = np.split(np.rint(100 * fitted.coef_.T).astype(np.int64), np.cumsum([e.size + 1 for e in edges])[:-1])
        terms = [StepFunction(at, *parts) for at, parts in enumerate(zip(edges, cells, strict=True))]
        offsets = np.rint(100 * fitted.intercept_).astype(np.int64).tolist()
        model = AdditiveEnsemble(terms, Argmax(offsets), n_features=X.shape[1])
        rows, scale = X[np.random.default_rng(0).permutation(len(X))[:count]], X.std(axis=0)
        noise = Gaussian(0.5, tuple(np.where(scale > 0, scale, 1.0).tolist()))
        for norm in (1, 2, math.inf):
            name = f"{load.__name__[5:]}, {len(offsets)} classes, l{norm}"
            yield Case(name, model, rows, noise, Threat(norm=norm))


def list_sizes(count: int) -> Iterator[Case]:
    """Random models of growing size."""
    rng = np.random.default_rng(0)
    for n_terms, n_cells, levels in SIZES:
        terms = []
        for at in range(n_terms):
            edges = np.sort(rng.normal(size=n_cells - 1))
            terms.append(StepFunction(at, edges, rng.integers(0, levels + 1, n_cells)))
        middle = sum(int(term.scores.mean()) for term in terms)
        model = AdditiveEnsemble(terms, middle, n_features=n_terms)
        name = f"{n_terms} terms of {n_cells} cells, {levels} levels"
        yield Case(name, model, rng.normal(size=(count, n_terms)), Gaussian(0.5))


def audit_case(case: Case, way: str) -> Line:
    """Certify, audit, forge, audit again."""
    rule, proof = WAYS[way]
    given = case.threat or Threat()
    certificates = certify(case.model, case.rows, case.noise, rule=rule, proof=proof, threat=given)
    result = audit(case.model, case.rows, certificates, rows=None)
    found, forged = audit_forged(case, certificates)
    proven = int((result.verdict == "proven").sum())
    seconds = float(result.seconds.mean()), float(result.seconds.max())
    return Line(case.name, way, len(result), proven, *seconds, forged, found, case.model.weights is not None)


def audit_forged(case: Case, certificates: Certificates) -> tuple[int, int]:
    """How many radii that are 0.1 % too large are found, and how many there are."""
    finite = np.flatnonzero((certificates.radius > 0) & np.isfinite(certificates.radius))[:5]
    if not finite.size or certificates.norm == 0:
        return 0, 0
    forged = replace(certificates[finite], radius=certificates.radius[finite] * 1.001)
    result: Audit = audit(case.model, case.rows[finite], forged, rows=None)
    return int((result.verdict != "proven").sum()), len(result)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    sources = [list_trained, list_classes, list_sizes]
    if (shared_folder("golden") / "models").exists():
        sources.insert(0, list_golden)
    print("| model | rule | rows | proven | seconds a row | slowest | forged by 0.1 % | found |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    faults = 0
    for source in sources:
        for case in source(chosen.rows):
            if chosen.only not in case.name:
                continue
            for way in WAYS:
                if way == "vote" and isinstance(case.model, WeightedVote):
                    continue  # the same proofs as each of its members, which take long
                line = audit_case(case, way)
                faults += line.is_fault
                print(
                    f"| {line.name} | {line.way} | {line.rows} | {line.proven} | {line.seconds:.3f} | "
                    f"{line.slowest:.2f} | {line.forged} | {line.found} |{' FAULT' if line.is_fault else ''}",
                    flush=True,
                )
    print(f"\n{faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
