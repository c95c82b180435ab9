"""Flips single bits of model files of every kind: each file must be refused, or certify as before to the last bit.

    python scripts/flip_bits.py              # 3,000 flips; exit code 1 where a file loads with other certificates

The bits are drawn evenly over the kinds of models and the whole of each file. A flip that loads is one that means
nothing: a space that became another blank, a digit beyond what a double holds.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pandas as pd

from derand import AdditiveEnsemble, CategoryTable, Certificates, StepFunction, WeightedVote, certify, load, save
from derand.estimators import TRAINERS

N_FLIPS = 3000
FIELDS = ("label", "failure", "log_failure", "radius")


class Tally(TypedDict):
    """What became of the flipped files."""

    flips: int
    refused: int
    same_certificates: int
    other_certificates: int
    other_errors: int


def make_ensemble() -> AdditiveEnsemble:
    """Step functions of several cells, and a table."""
    terms = (
        StepFunction(0, [-0.5, 0.1, 1 / 3], [-4, 0, 7, 3]),
        StepFunction(1, [0.25], [-5, 4]),
        CategoryTable(2, [0, 1], [3, -3], other=1),
    )
    return AdditiveEnsemble(terms, threshold=1, n_features=3, levels=20)


def make_with_gaps() -> AdditiveEnsemble:
    """Terms that have cells for missing values."""
    terms = (
        StepFunction(0, [-0.5, 0.1, 1 / 3], [-4, 0, 7, 3], missing=-2),
        StepFunction(1, [0.25], [-5, 4], missing=6),
        CategoryTable(2, [0, 1], [3, -3], other=1, missing=-4),
    )
    return AdditiveEnsemble(terms, threshold=1, n_features=3, levels=20)


def make_vote() -> WeightedVote:
    """Two ensembles, of which one is reversed."""
    return WeightedVote((make_ensemble(), make_ensemble()), [0.7, -0.2])


def make_classifier(trainer: str) -> Any:
    """A trained classifier with named columns, numbers and categories."""
    frame = draw_frame()
    labels = np.where(frame["age"] + (frame["job"] == "cook") > 0.3, "yes", "no")
    return TRAINERS[trainer](noise="gaussian:0.5", scaling="standard").fit(frame, labels)


def draw_frame() -> pd.DataFrame:
    """Rows to train on and to certify."""
    rng = np.random.default_rng(0)
    jobs = rng.choice(["cook", "clerk", "nurse"], size=60)
    return pd.DataFrame({"age": rng.normal(size=60), "income": rng.exponential(size=60), "job": jobs})


def certify_bare(model: Any) -> list[Certificates]:
    """Certificates of an ensemble or a vote."""
    rows = np.random.default_rng(0).normal(size=(40, 3))
    rows[:, 2] = np.arange(40) % 4
    return certify(model, rows, "gaussian:0.5", l0=[0, 1])


def certify_gaps(model: Any) -> list[Certificates]:
    """Certificates of rows of which every fourth number is missing."""
    rows = np.random.default_rng(0).normal(size=(40, 3))
    rows[:, 2] = np.arange(40) % 4
    rows.ravel()[::4] = np.nan
    return certify(model, rows, "gaussian:0.5", l0=[0, 1])


def certify_classifier(model: Any) -> list[Certificates]:
    """Certificates of a classifier."""
    found: list[Certificates] = model.certify(draw_frame(), l0=[0, 1])
    return found


KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any], list[Certificates]]]] = {
    "additive_ensemble": (make_ensemble, certify_bare),
    "missing_values": (make_with_gaps, certify_gaps),
    "weighted_vote": (make_vote, certify_bare),
    **{name: (lambda name=name: make_classifier(name), certify_classifier) for name in TRAINERS},
}


def flip_bits(n_flips: int, seed: int = 0) -> dict[str, Tally]:
    """For each kind of model, what became of its share of the flips."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        return {name: _flip_one(name, path, n_flips // len(KINDS), rng) for name in KINDS}


def _flip_one(name: str, path: Path, n_flips: int, rng: np.random.Generator) -> Tally:
    make, certify_rows = KINDS[name]
    save(make(), path)
    content, wanted = path.read_bytes(), _as_bytes(certify_rows(load(path)))
    tally: Tally = {
        "flips": n_flips,
        "refused": 0,
        "same_certificates": 0,
        "other_certificates": 0,
        "other_errors": 0,
    }
    for place in rng.integers(8 * len(content), size=n_flips).tolist():
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        try:
            model = load(path)
        except ValueError:
            tally["refused"] += 1
            continue
        except Exception as error:
            print(f"{name}, bit {place}: {error!r}", file=sys.stderr)
            tally["other_errors"] += 1
            continue
        is_same = _certifies_as(wanted, lambda model=model: certify_rows(model))
        tally["same_certificates" if is_same else "other_certificates"] += 1
    return tally


def _certifies_as(wanted: list[bytes], certify_rows: Callable[[], list[Certificates]]) -> bool:
    try:
        return _as_bytes(certify_rows()) == wanted
    except Exception:  # a model that loads and then refuses the rows is another one
        return False


def _as_bytes(certificates: list[Certificates]) -> list[bytes]:
    return [np.asarray(getattr(one, field)).tobytes() for one in certificates for field in FIELDS]


def main() -> int:
    """Flip, print what became of it, and say whether all is well."""
    found = flip_bits(N_FLIPS)
    print(json.dumps(found, indent=2))
    bad = sum(tally["other_certificates"] + tally["other_errors"] for tally in found.values())
    print(f"{sum(tally['flips'] for tally in found.values())} flips, {bad} that load with other certificates or crash")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
