"""What is claimed of rows: certificates, intervals, radii of tolerance, verdicts, witnesses, attacks, audits."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from scripts.snapshot.models import Case, draw_cases
from scripts.snapshot.recording import Recorder

NOISES = ("gaussian:0.5", "uniform:1", "laplace:0.4", "units")
ASKS = (
    ("none", "mean", "best"),
    *itertools.product(NOISES, ("vote", "mean"), ("best",)),
    *itertools.product(NOISES[:3], ("vote",), ("paper",)),
)
"""Noise, rule, proof."""
CERTIFICATES = ("label", "failure", "log_failure", "radius", "proof", "path", "runner_up")
VERDICTS = ("verdict", "flips", "witness", "worst")
INTERVALS = ("value", "low", "high")
TOLERANCE = ("value", "radius", "proof")
ATTACKS = ("found", "distance", "rows", "label", "flipped", "n_categories")
INTERVAL_ATTACKS = ("value", "low", "high", "low_rows", "high_rows")
AUDIT = ("row", "claimed", "proven", "verdict", "claim", "n_rows", "passed")


def record_claims(recorder: Recorder, quick: bool) -> None:
    """Every kind of model, under every noise, rule and proof, against every threat; in the quick set a part of them."""
    count = 0
    for seed in range(1 if quick else 2):
        for number, case in enumerate(draw_cases(recorder.words, seed)):
            slow = "vote" in case.name
            share = (4 if slow or "grids" in case.name or case.rows.shape[1] > 8 else 2) if quick else 1
            every = (23 if slow else 7) * (2 if quick else 1)  # attacks and audits take longest
            for at, (ask, name) in enumerate(itertools.product(ASKS, case.threats)):
                if (at + number + at // len(case.threats)) % share == 0:
                    count += 1
                    _record_one(recorder, case, ask, name, attacked=count % every == 0)


def _record_one(recorder: Recorder, case: Case, ask: tuple[str, str, str], name: str, attacked: bool) -> None:
    """One claim; now and then what attacks find against it and what an audit says of it."""
    words, (kind, rule, proof) = recorder.words, ask
    noise: Any = kind
    if kind == "units":
        noise = words.Gaussian(0.5, units=np.linspace(0.5, 2.0, case.rows.shape[1]).tolist())
    place = f"{case.name}/{kind} {rule} {proof}/{name}"
    with recorder.at(f"certificates/{place}"):
        threat = words.Threat(**case.threats[name])
        if case.decision == "regression":
            _record_interval(recorder, case, noise, (rule, proof), threat, attacked)
            return
        found = words.certify(case.model, case.rows, noise, rule=rule, proof=proof, threat=threat)
        recorder.add_fields(found, *CERTIFICATES)
        recorder.add_fields(found, *VERDICTS, section="verdicts")
        if attacked:
            recorder.add_fields(
                words.attack(case.model, case.rows[:3], noise, rule=rule, threat=threat), *ATTACKS, section="attacks"
            )
            if proof == "best":
                recorder.add_fields(words.audit(case.model, case.rows, found, rows=2), *AUDIT, section="audits")


def _record_interval(
    recorder: Recorder, case: Case, noise: Any, how: tuple[str, str], threat: Any, attacked: bool
) -> None:
    """The same where predictions are numbers: intervals, and radii within which they move little."""
    words, asked = recorder.words, {"rule": how[0], "proof": how[1], "threat": threat}
    norm = words.get(threat, "norm")
    radius = None if norm is None else 1.0 if norm == 0 else 0.3
    found = words.certify_interval(case.model, case.rows, noise, radius, **asked)
    recorder.add_fields(found, *INTERVALS, section="intervals")
    if radius is not None and norm != 0:
        radii = words.certify_radius(case.model, case.rows[:3], noise, 0.05, **asked)
        recorder.add_fields(radii, *TOLERANCE, section="tolerance")
    if attacked:
        rows = case.rows[:2]
        tried = words.attack_interval(case.model, rows, noise, radius, rule=how[0], threat=threat)
        recorder.add_fields(tried, *INTERVAL_ATTACKS, section="attacks")
        if how[1] == "best":
            recorder.add_fields(words.audit(case.model, case.rows, found, rows=1), *AUDIT, section="audits")


def record_rows(recorder: Recorder, quick: bool) -> None:
    """Distributions of scores, and many rows at once, which go through blocks and threads."""
    words = recorder.words
    for case in draw_cases(words, 7):
        if case.decision != "labels" or "lines" in case.name:
            continue
        rows = np.tile(case.rows, (20 if quick else 100, 1))
        numbers = (np.nan_to_num(case.rows) % 1 != 0).any(axis=0)  # codes of categories stay as they are
        rows[:, numbers] += 0.003 * np.arange(len(rows))[:, None]
        for noise in NOISES[:3]:
            with recorder.at(f"rows/{case.name}/{noise}"):
                if "vote" not in case.name:
                    recorder.add_fields(words.distribution(case.model, case.rows[:1], noise), "support", "pmf")
                budgets = words.certify(case.model, rows, noise, l0=[0, 1, 2], unseen=False)
                for at, found in enumerate(budgets):
                    recorder.add_fields(found, *CERTIFICATES, below=str(at))
