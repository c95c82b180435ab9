"""Certified accuracy over the radius, what it is compared with, and the histogram of radii.

Every number comes from `derand.metrics` over all rows; nothing here is sampled.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from derand.certificates import Certificates, certify
from derand.metrics import average_certified_radius, certified_accuracy
from derand.report._inputs import FloatArray, Inputs
from derand.report._text import percent

_STEPS_PER_MAJOR = 20
_HISTOGRAM_BINS = 40
_USUAL, _ROOM = 0.98, 1.25
_BASELINE_SHARE = 0.01
"""The baseline is trained with this share of the noise: enough for the trainer to run, too little to matter."""


def choose_scale(certificates: Certificates, quoted: float | None) -> dict[str, Any]:
    """Radii at which curves are evaluated, `major` ones for tables, and one `quoted` radius, by default a round one.

    A model whose radii are all 0 or infinite has the radius 0 alone.
    """
    finite = certificates.radius[np.isfinite(certificates.radius)]
    largest = float(finite.max(initial=0.0))
    if largest <= 0:
        radii = sorted({0.0, quoted or 0.0})
        return {"radii": radii, "major": radii, "quoted": quoted or 0.0}
    usual = float(np.quantile(finite[finite > 0], _USUAL))
    end = min(largest, _ROOM * usual)  # a few rows far out must not squeeze all others into a corner
    step = _nice_step(end / 7) / _STEPS_PER_MAJOR
    count = math.ceil(end / (step * _STEPS_PER_MAJOR) - 1e-9) * _STEPS_PER_MAJOR
    digits = max(0, 6 - math.floor(math.log10(step)))
    radii = [round(k * step, digits) for k in range(count + 1)]
    major = radii[::_STEPS_PER_MAJOR]
    if quoted is None:
        middle = float(np.quantile(np.minimum(certificates.radius, largest), 0.5, method="lower"))
        quoted = radii[max(1, int(_nice_below(middle) / step + 1e-9))]
    return {"radii": sorted({*radii, quoted}), "major": sorted({*major, quoted}), "quoted": quoted}


def _nice_below(value: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is not above."""
    if value <= 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return max(step for step in (power, 2 * power, 5 * power) if step <= value * (1 + 1e-12))


def _nice_step(rough: float) -> float:
    """The nearest of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return min((power, 2 * power, 5 * power, 10 * power), key=lambda step: abs(math.log(step / rough)))


def summarize_accuracy(inputs: Inputs, scale: dict[str, Any], training: tuple[Any, Any] | None) -> dict[str, Any]:
    """Curves for all rows, each class, each number of categorical changes, and the baselines."""
    radii = scale["radii"]
    series: list[dict[str, Any]] = []

    def add(key: str, role: str, label: str, shares: FloatArray, l0: int = 0) -> None:
        series.append({"key": key, "role": role, "label": label, "l0": l0, "values": [float(v) for v in shares]})

    if inputs.labels is None:
        for certificates in inputs.certificates:
            add(
                f"l0={certificates.l0}",
                "l0",
                _name_budget(certificates.l0),
                _shares(certificates, radii),
                certificates.l0,
            )
        add("all", "all", "all rows", _shares(inputs.plain, radii))
        return {"measure": "certified share", "series": series, "baselines": []}
    labels = inputs.labels
    add("all", "all", "all rows", certified_accuracy(labels, inputs.plain, radii))
    add("balanced", "balanced", "balanced", certified_accuracy(labels, inputs.plain, radii, balanced=True))
    for name in inputs.subject.classes.tolist():
        at = np.flatnonzero(labels == name)
        if at.size:
            add(f"class={name}", "class", str(name), certified_accuracy(labels[at], inputs.plain[at], radii))
    for certificates in inputs.certificates:
        shares = certified_accuracy(labels, certificates, radii)
        add(f"l0={certificates.l0}", "l0", _name_budget(certificates.l0), shares, certificates.l0)
    baselines = _compare(inputs, labels, training)
    for baseline in baselines:
        certificates = baseline.pop("certificates")
        baseline["accuracy"] = float((certificates.label == labels).mean())
        add(
            f"baseline={baseline['key']}",
            "baseline",
            baseline["label"],
            certified_accuracy(labels, certificates, radii),
        )
    return {"measure": "certified accuracy", "series": series, "baselines": baselines}


def _name_budget(l0: int) -> str:
    if l0 == 0:
        return "numbers alone"
    return f"and {l0} {'category' if l0 == 1 else 'categories'} changed"


def _shares(certificates: Certificates, radii: list[float]) -> FloatArray:
    """Share of the rows that are certified at each radius, whatever their true label."""
    return certified_accuracy(certificates.label, certificates, radii)


def _compare(inputs: Inputs, labels: NDArray[Any], training: tuple[Any, Any] | None) -> list[dict[str, Any]]:
    """Baselines: always the most frequent label, and the same family trained (almost) without noise."""
    names, counts = np.unique(labels if training is None else np.asarray(training[1]), return_counts=True)
    frequent = names[int(counts.argmax())]
    whose = "these rows" if training is None else "the training rows"
    every = np.ones(inputs.n_rows)
    constant = Certificates(
        label=np.full(inputs.n_rows, frequent),
        failure=0 * every,
        log_failure=-np.inf * every,
        radius=np.inf * every,
        norm=inputs.plain.norm,
        classes=inputs.subject.classes,
    )
    found = [
        {
            "key": "constant",
            "label": f"always {frequent}",
            "description": f"Answers “{frequent}”, the most frequent label of {whose}, whatever the row holds. "
            "No change can flip it, so its curve is flat: a model is worth its robustness only above this line.",
            "certificates": constant,
        }
    ]
    if training is not None:
        found.append(_train_without_noise(inputs, training))
    return found


def _train_without_noise(inputs: Inputs, training: tuple[Any, Any]) -> dict[str, Any]:
    subject = inputs.subject
    if subject.estimator is None:
        raise ValueError("`X_train` needs a classifier that can be trained again: a bare model cannot. Leave it out.")
    parameters = subject.estimator.get_params(deep=False)
    # units are left to `scaling`, where the classifier has it
    units = None if parameters.get("scaling") is not None else subject.noise.units
    weak = type(subject.noise)(subject.noise.magnitude * _BASELINE_SHARE, units)  # type: ignore[call-arg]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twin = type(subject.estimator)(**{**parameters, "noise": weak}).fit(*training)
    certified = certify(twin.ensemble_, inputs.matrix, subject.noise)
    named = replace(certified, label=subject.classes[certified.label], classes=subject.classes)
    return {
        "key": "without-noise",
        "label": "trained without noise",
        "description": f"The same {type(subject.estimator).__name__} with the same parameters, trained on the "
        f"same rows with {_BASELINE_SHARE:.0%} of the noise, so that it does not learn to be robust; certified exactly "
        "as the model is.",
        "certificates": named,
    }


def tabulate(accuracy: dict[str, Any], scale: dict[str, Any]) -> dict[str, Any]:
    """The curves at the major radii, as shares and as text."""
    at = [scale["radii"].index(radius) for radius in scale["major"]]
    shown = [one for one in accuracy["series"] if not (one["role"] == "l0" and one["l0"] == 0)]
    rows = [
        {
            "key": one["key"],
            "label": _name_line(one),
            "values": [one["values"][k] for k in at],
            "text": [percent(one["values"][k]) for k in at],
        }
        for one in shown
    ]
    return {"radii": scale["major"], "rows": rows}


def _name_line(series: dict[str, Any]) -> str:
    prefix = {"class": "class ", "l0": "numbers ", "baseline": "baseline: "}.get(series["role"], "")
    return prefix + str(series["label"])


def summarize_histogram(inputs: Inputs, scale: dict[str, Any]) -> dict[str, Any]:
    """How many rows have which radius, right and wrong answers apart; 0 and infinity are counted beside the bins."""
    radius, correct = inputs.plain.radius, inputs.correct
    right = np.ones(radius.shape, dtype=bool) if correct is None else correct
    inside = (radius > 0) & np.isfinite(radius)
    end = scale["radii"][-1] if inside.any() else 0.0
    edges = np.linspace(0.0, end, _HISTOGRAM_BINS + 1) if end > 0 else np.zeros(1)
    bins = {"edges": edges.tolist(), "right": [], "wrong": []}
    if edges.size > 1:
        bins["right"] = np.histogram(radius[inside & right], edges)[0].tolist()
        bins["wrong"] = np.histogram(radius[inside & ~right], edges)[0].tolist()
    return {
        **bins,
        "beyond": int((inside & (radius > edges[-1])).sum()),
        "nothing_certified": int((radius == 0).sum()),
        "cannot_flip": int(np.isinf(radius).sum()),
    }


def summarize_radii(inputs: Inputs) -> dict[str, Any]:
    """Typical radii (at least that share of the rows has that radius or more), and the averages that need labels."""
    radius = inputs.plain.radius
    found: dict[str, Any] = {
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
        found["average_certified_radius"] = average_certified_radius(inputs.labels, inputs.plain)
    return found
