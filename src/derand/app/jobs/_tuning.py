"""Tuning on a file.

Owns the way from a table in a file to a recommendation, a picture and the command to train by. Must not know the
command line, how a table is read, nor how anything is measured or drawn: `derand.estimators.tuning` does.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from derand._core.files import PathLike, replace_when_done, require_writable
from derand._core.text import format_exactly
from derand.app.jobs._classifiers import OWN, choose_model, find_trainer, make_estimator
from derand.app.jobs._training_table import read_training_data
from derand.app.settings import NUMBER
from derand.estimators import CertifiedClassifier
from derand.estimators.tuning import RADIUS, Tuning, TuningSummary, has_training_radius, tune
from derand.threat_text import NORMS

PICTURES = (".png", ".svg", ".pdf")


class FileTuningSummary(TuningSummary):
    """What `tune_file` measured and recommends."""

    trainer: str
    rows: int
    target: str
    classes: dict[str, int]
    folds: int
    scaling: str | None
    command: str | None
    """How to train with the recommended value; None where there is none."""
    picture: str | None
    seconds: float


def tune_file(
    data: PathLike,
    target: str,
    output: PathLike | None = None,
    *,
    model: str | None = None,
    norm: str | None = None,
    radii: Sequence[float] = (),
    noise: str | None = None,
    scaling: str | None = OWN,
    class_weight: str | None = None,
    rule: str | None = None,
    balanced: bool = False,
    tolerance: float = 0.01,
    folds: int = 5,
    categorical: Collection[str] = (),
    ignored: Collection[str] = (),
    advance: Callable[[int, int], None] = lambda done, total: None,
) -> FileTuningSummary:
    """Measure on a CSV or Parquet file what robustness costs, and say how to train.

    Parameters
    ----------
    data, target, scaling, class_weight, categorical, ignored
        As for `train_file`.
    output : path-like or None
        Where to put a picture: .png, .svg or .pdf.
    model : str or None
        A trainer of `derand.estimators.TRAINERS`; None is `choose_model()`.
    norm : str or None
        Of the ball, as text: "0", "1", "2" or "inf". None is that of the trainer, or of its noise.
    radii : sequence of float
        Where certified accuracy is measured; also the training radii that are tried, beside 0, of trainers that have
        one. Nothing is the usual ones.
    noise, rule
        As for the classifiers; None is the trainer's own. Magnitudes are tried around that of the noise.
    balanced, tolerance
        As for `derand.tune`.
    folds : int
    advance : callable
        Told how many trainings of how many are done.

    Returns
    -------
    FileTuningSummary
        A dict: the figures of every value, the recommendation, and the command to train by.
    """
    start = time.perf_counter()
    name = choose_model() if model is None else model
    given: dict[str, Any] = {"noise": noise, "class_weight": class_weight, "rule": rule}
    if norm is not None and "norm" in find_trainer(name)().get_params(deep=False):
        given["norm"] = _read_norm(norm)  # it is trained for a norm: the one that it is tuned in
    estimator: CertifiedClassifier = make_estimator(name, given, scaling)
    if output is not None:
        if Path(output).suffix not in PICTURES:
            raise ValueError(f"{os.fspath(output)} must end with one of {', '.join(PICTURES)}: it is a picture.")
        require_writable(output, data)
    read = read_training_data(data, target, categorical=categorical, ignored=ignored)
    if read.task.name == NUMBER:
        raise ValueError(
            f"{os.fspath(data)} has a number to be predicted in the column {target!r} ({read.task.reason}), and tuning "
            "knows classes alone: train with some radii, or write the labels as text where they are classes."
        )
    tuning = tune(
        estimator,
        read.rows,
        read.labels,
        radii=radii or None,
        norm=None if norm is None else _read_norm(norm),
        values=_list_values(estimator, radii),
        cv=folds,
        balanced=balanced,
        tolerance=tolerance,
        advance=advance,
    )
    if output is not None:
        made = f"{name}, scaling {estimator.scaling or 'none'}"
        _draw(tuning, output, f"{Path(data).name}: what robustness costs ({made})")
    names, counts = np.unique(read.labels, return_counts=True)
    options = [
        ("--norm", norm if tuning.parameter == RADIUS else None),  # a noise has a norm of its own
        ("--noise", noise if tuning.parameter == RADIUS else None),  # else it is what was tuned
        ("--scaling", None if scaling == OWN else scaling or "none"),
        ("--class-weight", class_weight),
        ("--rule", rule),
        *(("--categorical", column) for column in categorical),
        *(("--ignore", column) for column in ignored),
    ]
    return {
        **tuning.to_dict(),
        "trainer": name,
        "rows": len(read.labels),
        "target": target,
        "classes": dict(zip(map(str, names.tolist()), counts.tolist(), strict=True)),
        "folds": folds,
        "scaling": estimator.scaling,
        "command": _write_command(tuning, [os.fspath(data), "--target", target, "--model", name], options),
        "picture": None if output is None else os.fspath(output),
        "seconds": time.perf_counter() - start,
    }


def _read_norm(norm: str) -> Any:
    if norm not in NORMS or norm in ("auto", "none"):
        known = ", ".join(one for one in NORMS if one not in ("auto", "none"))
        raise ValueError(f"`norm` must be one of {known}, got {norm!r}.")
    return NORMS[norm]


def _list_values(estimator: CertifiedClassifier, radii: Sequence[float]) -> list[float] | None:
    """Training radii to try; None is the usual ones. A vote needs noise, which there is none of at radius 0."""
    if not radii or not has_training_radius(estimator):
        return None
    return list(radii) if estimator.rule == "vote" else [0.0, *radii]


def _draw(tuning: Tuning, output: PathLike, title: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = tuning.plot(figure.subplots())
    axes.set_title(title, loc="left", fontsize=11)
    with replace_when_done(output) as draft:
        figure.savefig(draft, format=Path(output).suffix[1:], dpi=150)


def _write_command(tuning: Tuning, start: Sequence[str], options: Iterable[tuple[str, str | None]]) -> str | None:
    """The `derand train` that follows from a recommendation."""
    if tuning.chosen is None:
        return None
    value = tuning.recommended
    written = format_exactly(value) if isinstance(value, float) else str(value)
    given = [word for option, text in options if text is not None for word in (option, text)]
    return shlex.join(["derand", "train", *start, f"--{tuning.parameter}", written, *given, "-o", "model.json"])
