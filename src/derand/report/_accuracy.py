"""Certified accuracy over the radius, what it is compared with, and the histogram of radii.

Every number comes from `derand.metrics` over all rows; nothing here is sampled.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from derand._core.arrays import BoolArray, FloatArray
from derand.certificates import Certificates, certify
from derand.metrics import certified_accuracy, certified_share
from derand.metrics import summarize_radii as measure_radii
from derand.report._inputs import Inputs, LabelArray, Training
from derand.report._text import percent
from derand.report._types import Accuracy, AccuracyTable, Histogram, Radii, Scale, Series

if TYPE_CHECKING:
    from derand.estimators import CertifiedClassifier

_STEPS_PER_MAJOR = 20
_HISTOGRAM_BINS = 40
_USUAL, _ROOM = 0.98, 1.25
_FAR = 2.0
"""A radius of the text that lies so many times beyond all others does not stretch the charts."""
_BASELINE_SHARE = 0.01
"""The baseline is trained with this share of the noise: enough for the trainer to run, too little to matter."""


DEFAULT_RADIUS = 0.25
"""The radius that the text speaks of where none is stated: a quarter of what counts as a change of 1, whatever the
model and the rows, so that reports can be compared. In norm 0, where radii count columns, it is 1."""


def choose_scale(inputs: Inputs, stated: float | None, trained: float | None = None) -> Scale:
    """Radii at which curves are evaluated, `major` ones for tables, and the `quoted` one that the text speaks of.

    Where limits alone say what may change, and for a model that reads no numbers, there is the radius 0 alone.
    """
    certificates = inputs.plain
    if certificates.norm == 0 and stated is not None and not stated.is_integer():
        raise ValueError(f"`radius` must be a whole number of columns for norm 0, got {stated}.")
    if certificates.norm is None:
        radii, major, quoted = [0.0], [0.0], 0.0
    else:
        quoted = _choose_quoted(inputs) if stated is None else stated
        radii, major = spread_radii(certificates)
    named = {quoted} if trained is None else {quoted, trained}
    return {
        "radii": sorted({*radii, *named}),
        "major": sorted({*major, *named}),
        "end": find_end(radii[-1], quoted),
        "quoted": quoted,
        "stated": stated is not None,
        "trained": trained,
    }


def find_end(last: float, quoted: float) -> float:
    """Where charts end: at the last radius or the quoted one, unless that lies far beyond all others."""
    return last if quoted > _FAR * last > 0 else max(last, quoted)


def _choose_quoted(inputs: Inputs) -> float:
    """The radius that the text speaks of unless one is stated: it depends on neither results nor rows."""
    if not inputs.subject.model.numerical_features:
        return 0.0
    return 1.0 if inputs.threat.norm == 0 else DEFAULT_RADIUS


def spread_radii(certificates: Certificates) -> tuple[list[float], list[float]]:
    """Radii from 0 to where few rows are left, and the round ones of them; 0 alone where all are 0 or infinite."""
    finite = certificates.radius[np.isfinite(certificates.radius)]
    largest = float(finite.max(initial=0.0))
    if largest <= 0:
        return [0.0], [0.0]
    if certificates.norm == 0:
        counts = [float(k) for k in range(int(largest) + 1)]
        return counts, counts[:: max(1, math.ceil(largest / 8))]
    usual = float(np.quantile(finite[finite > 0], _USUAL))
    end = min(largest, _ROOM * usual)  # a few rows far out must not squeeze all others into a corner
    step = _nice_step(end / 7) / _STEPS_PER_MAJOR
    count = math.ceil(end / (step * _STEPS_PER_MAJOR) - 1e-9) * _STEPS_PER_MAJOR
    digits = max(0, 6 - math.floor(math.log10(step)))
    radii = [round(k * step, digits) for k in range(count + 1)]
    return radii, radii[::_STEPS_PER_MAJOR]


def _nice_step(rough: float) -> float:
    """The nearest of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return min((power, 2 * power, 5 * power, 10 * power), key=lambda step: abs(math.log(step / rough)))


def summarize_accuracy(inputs: Inputs, scale: Scale, training: Training | None) -> Accuracy:
    """Curves for all rows, each class, each number of categorical changes, and the baselines."""
    if inputs.labels is None:
        return {"measure": "certified share", "series": _draw_shares(inputs, scale["radii"]), "baselines": []}
    baselines = _compare(inputs, inputs.labels, training)
    return {
        "measure": "certified accuracy",
        "series": [
            *_draw_accuracies(inputs, inputs.labels, scale["radii"]),
            *(baseline.draw(scale["radii"]) for baseline in baselines),
            _draw_balanced_constant(inputs.labels, len(scale["radii"])),
        ],
        "baselines": [
            {
                "key": baseline.key,
                "label": baseline.label,
                "description": baseline.description,
                "accuracy": float(baseline.correct.mean()),
            }
            for baseline in baselines
        ],
    }


def _draw_shares(inputs: Inputs, radii: list[float]) -> list[Series]:
    """Shares of the rows that are certified at each radius, whatever their true label."""
    every = np.ones(inputs.n_rows, dtype=bool)
    found = [name_budget(one.l0, certified_share(every, one.radius, radii)) for one in inputs.certificates]
    share = certified_share(every, inputs.plain.radius, radii)
    return [*found, {"key": "all", "role": "all", "label": "all rows", "l0": inputs.plain.l0, "values": share.tolist()}]


def _draw_accuracies(inputs: Inputs, labels: LabelArray, radii: list[float]) -> list[Series]:
    """Certified accuracy of all rows, with equal weight of the classes, of each class, and of each budget."""
    share = certified_accuracy(labels, inputs.plain, radii)
    balanced = certified_accuracy(labels, inputs.plain, radii, balanced=True)
    l0 = inputs.plain.l0
    found: list[Series] = [
        {"key": "all", "role": "all", "label": "all rows", "l0": l0, "values": share.tolist()},
        {
            "key": "balanced",
            "role": "balanced",
            "label": "balanced",
            "l0": l0,
            "values": balanced.tolist(),
        },
    ]
    for name in inputs.subject.classes.tolist():
        at = np.flatnonzero(labels == name)
        if at.size:
            share = certified_accuracy(labels[at], inputs.plain[at], radii)
            key, label = f"class={name}", str(name)
            found.append({"key": key, "role": "class", "label": label, "l0": l0, "values": share.tolist()})
    budgets = inputs.certificates
    return [*found, *(name_budget(one.l0, certified_accuracy(labels, one, radii)) for one in budgets)]


def name_budget(l0: int, shares: FloatArray) -> Series:
    """The curve of a number of categorical changes."""
    label = f"and {l0} {'category' if l0 == 1 else 'categories'} changed" if l0 else "numbers alone"
    return {"key": f"l0={l0}", "role": "l0", "label": label, "l0": l0, "values": shares.tolist()}


def _draw_balanced_constant(labels: LabelArray, count: int) -> Series:
    """The balanced accuracy of any constant answer: right on one class, wrong on all others."""
    share = 1.0 / np.unique(labels).size
    return {
        "key": "baseline=balanced",
        "role": "baseline",
        "label": "any constant answer, balanced",
        "l0": 0,
        "values": [share] * count,
    }


@dataclass(frozen=True, slots=True, eq=False)
class _Baseline:
    """What the model is compared with: which rows it answers rightly, and within which radius no change flips it."""

    key: str
    label: str
    description: str
    correct: BoolArray
    radius: FloatArray

    def draw(self, radii: list[float]) -> Series:
        """Its certified accuracy at each radius."""
        shares = certified_share(self.correct, self.radius, radii)
        key = f"baseline={self.key}"
        return {"key": key, "role": "baseline", "label": self.label, "l0": 0, "values": shares.tolist()}


def _compare(inputs: Inputs, labels: LabelArray, training: Training | None) -> list[_Baseline]:
    """Baselines: always the most frequent label, and the same family trained (almost) without noise."""
    names, counts = np.unique(labels if training is None else np.asarray(training.y), return_counts=True)
    frequent = names[int(counts.argmax())]
    whose = "these rows" if training is None else "the training rows"
    flat = "" if inputs.threat.norm is None else ", so its curve is flat"
    constant = _Baseline(
        "constant",
        f"always {frequent}",
        f"Answers “{frequent}”, the most frequent label of {whose}, whatever the row holds. "
        f"No change can flip it{flat}: a model is worth its robustness only where its share of all rows is above this "
        f"one, or its balanced share above {percent(1.0 / np.unique(labels).size)}, that of any constant answer.",
        np.asarray(labels == frequent),
        np.full(inputs.n_rows, np.inf),
    )
    is_read = getattr(inputs.subject.estimator, "source_", None) is not None  # by another library: no twin of it
    return [constant] if training is None or is_read else [constant, _train_without_noise(inputs, labels, training)]


def _train_without_noise(inputs: Inputs, labels: LabelArray, training: Training) -> _Baseline:
    subject = inputs.subject
    if subject.estimator is None:
        raise ValueError("`X_train` needs a classifier that can be trained again: a bare model cannot. Leave it out.")
    twin, label, how = _make_twin(subject.estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twin.fit(*training)
    plain = inputs.plain
    # a twin that reads no column with gaps has nothing to lose where a value goes missing
    threat = plain.threat if twin.ensemble_.missing_features else replace(plain.threat, missing="fixed")
    certificates = certify(
        twin.ensemble_, inputs.matrix, subject.noise, rule=plain.rule, proof=inputs.proof, threat=threat
    )
    return _Baseline(
        "without-noise",
        label,
        f"The same {type(subject.estimator).__name__} with the same parameters, trained on the "
        f"same rows {how}, so that it does not learn to be robust; certified exactly as the model is.",
        np.asarray(subject.classes[certificates.label] == labels),
        certificates.radius,
    )


def _make_twin(estimator: CertifiedClassifier) -> tuple[CertifiedClassifier, str, str]:
    """A twin that does not learn to be robust, what it is called, and what it is trained with."""
    parameters, own = estimator.get_params(deep=False), estimator.noise_
    if own is not None and parameters.get("scaling") is not None:
        own = own.with_units(None)  # they are left to `scaling`
    if {"radius", "norm"} <= set(parameters):  # it is trained for a radius; a vote needs its noise
        noise = {"noise": own} if parameters["rule"] == "vote" else {}
        return type(estimator)(**{**parameters, "radius": 0.0, **noise}), "not trained for robustness", "for radius 0"
    assert own is not None  # only trainers of a radius know models without noise
    weak = type(own)(own.magnitude * _BASELINE_SHARE, own.units)  # type: ignore[call-arg]
    twin = type(estimator)(**{**parameters, "noise": weak})
    return twin, "trained without noise", f"with {_BASELINE_SHARE:.0%} of the noise"


def tabulate(accuracy: Accuracy, scale: Scale) -> AccuracyTable:
    """The curves at the major radii, as shares and as text."""
    at = [scale["radii"].index(radius) for radius in scale["major"]]
    _, *changed = [one["key"] for one in accuracy["series"] if one["role"] == "l0"]  # the first is that of all rows
    shown = [one for one in accuracy["series"] if one["role"] != "l0" or one["key"] in changed]
    return {
        "radii": scale["major"],
        "rows": [
            {
                "key": one["key"],
                "label": _name_line(one),
                "values": [one["values"][k] for k in at],
                "text": [percent(one["values"][k]) for k in at],
            }
            for one in shown
        ],
    }


def _name_line(series: Series) -> str:
    prefix = {"class": "class ", "l0": "numbers ", "baseline": "baseline: "}.get(series["role"], "")
    return prefix + str(series["label"])


def summarize_histogram(inputs: Inputs, scale: Scale) -> Histogram:
    """How many rows have which radius, right and wrong answers apart; 0 and infinity are counted beside the bins."""
    radius, correct = inputs.plain.radius, inputs.correct
    right = np.ones(radius.shape, dtype=bool) if correct is None else correct
    inside = (radius > 0) & np.isfinite(radius)
    end = scale["end"] if inside.any() else 0.0
    edges = np.linspace(0.0, end, _HISTOGRAM_BINS + 1) if end > 0 else np.zeros(1)
    if inputs.threat.norm == 0 and end > 0:  # radii count columns
        edges = np.arange(end + 1) + 0.5
    has_bins = edges.size > 1
    return {
        "edges": edges.tolist(),
        "right": np.histogram(radius[inside & right], edges)[0].tolist() if has_bins else [],
        "wrong": np.histogram(radius[inside & ~right], edges)[0].tolist() if has_bins else [],
        "beyond": int((inside & (radius > edges[-1])).sum()),
        "nothing_certified": int((radius == 0).sum()),
        "cannot_flip": int(np.isinf(radius).sum()),
    }


def summarize_radii(inputs: Inputs) -> Radii:
    """Typical radii (at least that share of the rows has that radius or more), and the averages that need labels."""
    radius = inputs.plain.radius
    found: Radii = {
        "median": float(np.quantile(radius, 0.5, method="lower")),
        "tenth": float(np.quantile(radius, 0.1, method="lower")),
        "smallest": float(radius.min()),
        "largest": float(radius.max()),
        "certified_rows": int((radius > 0).sum()),
    }
    if inputs.labels is not None:
        correct = inputs.labels == inputs.plain.label
        by_class = [correct[inputs.labels == name].mean() for name in np.unique(inputs.labels)]
        found["accuracy"] = float(correct.mean())
        found["balanced_accuracy"] = float(np.mean(by_class))
        if inputs.plain.verdict is None:
            found["certified"] = measure_radii(inputs.labels, inputs.plain).to_dict()
    return found
