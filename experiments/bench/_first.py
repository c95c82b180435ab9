"""What the first use costs: CPU seconds of fresh processes, with nothing compiled yet and with everything on disk."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from derand import StumpClassifier, save
from experiments.bench._measure import Figures

_ROWS = """
import numpy as np
from derand import AdditiveEnsemble, StepFunction, certify
rng = np.random.default_rng(0)
terms = [StepFunction(i, np.sort(rng.normal(size={edges})), rng.integers(0, 50, {edges} + 1)) for i in range({terms})]
model = AdditiveEnsemble(terms, 25 * {terms}, {terms})
certify(model, rng.normal(size=(50, {terms})), "gaussian:0.5", rule="{rule}")
"""
_TRAINED = """
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from derand import AdditiveClassifier
X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
AdditiveClassifier(radius=0.25).fit(X_train, y_train).certify(X_test)
"""
_REFUSED = 2
_CERTIFIED = ["-m", "derand", "certify", "model.json", "rows.csv", "-o", "certificates.csv"]
_COMPILING = {
    "vote": ["-c", _ROWS.format(edges=3, terms=14, rule="vote")],
    "vote_of_stumps": ["-c", _ROWS.format(edges=1, terms=100, rule="vote")],
    "mean": ["-c", _ROWS.format(edges=3, terms=14, rule="mean")],
    "readme": ["-c", _TRAINED],
    "demo": ["-m", "derand", "demo"],
    "certify": _CERTIFIED,
}
_OTHERS = {
    "import": ["-c", "import derand"],
    "help": ["-m", "derand", "--help"],
    "refused": ["-m", "derand", "report", "missing.json", "rows.csv", "-o", "report.html"],
}


def bench_first(repeats: int = 3, cases: Sequence[str] = tuple(_COMPILING)) -> Figures:
    """CPU seconds of fresh processes: the first certificate of an empty cache, and later ones.

    Parameters
    ----------
    repeats : int
        Of what does not compile: the least counts.
    cases : sequence of str
        Which of those that may compile.

    Returns
    -------
    dict
        `<what>_first_cpu_s`, `<what>_later_cpu_s` and `<what>_later_s` from start to end, of votes, of the mean rule,
        of README's first example, of `derand demo` and of `derand certify` with 50 rows of a CSV file; of `import
        derand`, `derand --help` and a report on a model that does not exist the later ones alone.
    """
    results: Figures = {}
    for name in cases:
        arguments = _COMPILING[name]
        with TemporaryDirectory() as folder:
            _write_files(Path(folder))
            results[f"{name}_first_cpu_s"] = _run(arguments, folder)[0]
            results |= _repeat(name, arguments, folder, repeats)
    with TemporaryDirectory() as folder:
        for name, arguments in _OTHERS.items():
            results |= _repeat(name, arguments, folder, repeats)
    return results


def _write_files(folder: Path) -> None:
    """A small model and fifty rows, for `derand certify`."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    save(StumpClassifier().fit(X, X[:, 0] + X[:, 1] > 0), folder / "model.json")
    np.savetxt(folder / "rows.csv", X[:50], delimiter=",", header="x0,x1,x2,x3,x4,x5", comments="")


def _repeat(name: str, arguments: list[str], folder: str, repeats: int) -> Figures:
    found = [_run(arguments, folder) for _ in range(repeats)]
    cpu, wall = (min(side) for side in zip(*found, strict=True))
    return {f"{name}_later_cpu_s": cpu, f"{name}_later_s": wall}


def _run(arguments: list[str], folder: str) -> tuple[float, float]:
    """CPU seconds and seconds of a fresh process that keeps compiled code in a folder, and works in it."""
    import resource  # Windows has none

    path = os.pathsep.join(str(Path(place).resolve()) for place in sys.path if place)
    surroundings = os.environ | {"NUMBA_CACHE_DIR": folder, "PYTHONPATH": path}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], cwd=folder, env=surroundings, check=False, capture_output=True)
    if done.returncode != (_REFUSED if "missing.json" in arguments else 0):
        raise RuntimeError(f"{' '.join(arguments)[:80]} ended with {done.returncode}: {done.stderr.decode()[-500:]}")
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, seconds
