"""Tuning on a file.

Owns the way from a table in a file to a recommendation, a picture and the command to train by. Must not know the
command line, how a table is read, nor how anything is measured or drawn: `derand.estimators.tuning` does.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from derand._core.files import PathLike, replace_when_done, require_writable
from derand._core.text import format_exactly
from derand.app import Spell, Summary, quote_parameter
from derand.app.jobs._classifiers import choose_model, find_trainer, make_estimator
from derand.app.jobs._training import read_fixed_threat
from derand.app.jobs._training_table import read_training_data
from derand.app.settings import NUMBER, OWN, TrainSettings, TuneSettings, fill_settings
from derand.threat import Threat

if TYPE_CHECKING:
    from derand.estimators import CertifiedClassifier
    from derand.estimators.tuning import Tuning

PICTURES = (".png", ".svg", ".pdf")


def tune_file(
    data: PathLike,
    target: str,
    output: PathLike | None = None,
    settings: TuneSettings | None = None,
    *,
    spell: Spell = quote_parameter,
    advance: Callable[[int, int], None] = lambda done, total: None,
    **options: object,
) -> Summary:
    """Measure on a CSV or Parquet file what robustness costs, and say how to train.

    Parameters
    ----------
    data, target
        As for `train_file`.
    output : path-like or None
        Where to put a picture: .png, .svg or .pdf.
    settings : TuneSettings or None
        What is asked for; None is the trainer's own.
    spell : callable
        How errors name a parameter that does not fit.
    advance : callable
        Told how many trainings of how many are done.
    **options
        Fields of TuneSettings, which replace those of `settings`.

    Returns
    -------
    dict
        The figures of every value, the recommendation, and the command to train by.
        `command`: how to train with the recommended value; None where there is none.
    """
    start, asked = time.perf_counter(), fill_settings(TuneSettings, settings, options)
    name = asked.model or choose_model()
    columns = TrainSettings(categorical=asked.categorical, ignored=asked.ignored, dates=asked.dates)
    given = replace(columns, noise=asked.noise, class_weight=asked.class_weight, rule=asked.rule)
    is_for_threat = "norm" in find_trainer(name)().get_params(deep=False)
    if is_for_threat:  # it is trained for a threat: the one that it is tuned in
        given = replace(given, norm=asked.norm, l0=asked.l0, frozen=asked.frozen)
    estimator: CertifiedClassifier = make_estimator(name, given.list_parameters(), asked.scaling, spell=spell)
    if output is not None:
        if Path(output).suffix not in PICTURES:
            raise ValueError(f"{os.fspath(output)} must end with one of {', '.join(PICTURES)}: it is a picture.")
        require_writable(output, data)
    read = read_training_data(data, target, columns)
    if read.task.name == NUMBER:
        raise ValueError(
            f"{os.fspath(data)} has a number to be predicted in the column {target!r} ({read.task.reason}), and tuning "
            "knows classes alone: train with some radii, or write the labels as text where they are classes."
        )
    threat = _choose_threat(asked, estimator, read.rows.column_names)
    if is_for_threat and asked.threat is not None:
        estimator.set_params(threat=threat)
    from derand.estimators.tuning import tune

    tuning = tune(
        estimator,
        read.rows,
        read.labels,
        radii=asked.radii or None,
        norm=asked.norm if threat is None else None,
        threat=threat,
        values=_list_values(estimator, asked.radii),
        cv=asked.folds,
        balanced=asked.balanced,
        accuracy_loss=asked.accuracy_loss,
        advance=advance,
    )
    if output is not None:
        made = f"{name}, scaling {estimator.scaling or 'none'}"
        _draw(tuning, output, f"{Path(data).name}: what robustness costs ({made})")
    names, counts = np.unique(read.labels, return_counts=True)
    by_radius = tuning.parameter == "radius"  # a noise has a norm of its own, and is what was tuned
    told = {
        "--norm": f"{asked.norm:g}" if by_radius and asked.norm is not None else None,
        "--noise": asked.noise if by_radius else None,
        "--scaling": None if asked.scaling == OWN else asked.scaling or "none",
        "--class-weight": asked.class_weight,
        "--rule": asked.rule,
        "--l0": None if asked.l0 is None or not is_for_threat else str(asked.l0),
        "--threat": os.fspath(asked.threat) if isinstance(asked.threat, str | os.PathLike) and is_for_threat else None,
    }
    columns_given = {"categorical": asked.categorical, "ignored": asked.ignored, "dates": asked.dates}
    columns_given |= {"frozen": asked.frozen} if is_for_threat else {}
    written = [*told.items(), *((f"--{option}", one) for option, some in columns_given.items() for one in some)]
    return {
        **tuning.to_dict(),
        "trainer": name,
        "rows": len(read.labels),
        "target": target,
        "classes": dict(zip(map(str, names.tolist()), counts.tolist(), strict=True)),
        "folds": asked.folds,
        "scaling": estimator.scaling,
        "command": _write_command(tuning, [os.fspath(data), "--target", target, "--model", name], written),
        "picture": None if output is None else os.fspath(output),
        "seconds": time.perf_counter() - start,
    }


def _choose_threat(asked: TuneSettings, estimator: CertifiedClassifier, names: Sequence[str]) -> Threat | None:
    """What may change, where more than a norm is asked for."""
    if asked.threat is not None:
        if asked.norm is not None or asked.l0 is not None or asked.frozen:
            raise ValueError("`threat` says all of what may change: leave `norm`, `l0` and `frozen` out.")
        return asked.threat if isinstance(asked.threat, Threat) else read_fixed_threat(asked.threat, names)
    if asked.l0 is None and not asked.frozen:
        return None
    own = estimator.get_params(deep=False).get("norm") if asked.norm is None else asked.norm
    return Threat(norm="auto" if own is None else own, l0=asked.l0 or 0, frozen=tuple(asked.frozen))


def _list_values(estimator: CertifiedClassifier, radii: Sequence[float]) -> list[float] | None:
    """Training radii to try; None is the usual ones. A vote needs noise, which there is none of at radius 0."""
    from derand.estimators.tuning import has_training_radius

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
