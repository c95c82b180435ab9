"""What every result is kept with: the versions and the machine that it comes from."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TypedDict

import derand
from derand._core.threads import count_threads

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


class Machine(TypedDict):
    """A computer, without its name."""

    system: str
    processor: str
    cores: int


class Surroundings(TypedDict):
    """Versions by the name of the distribution, and the machine."""

    versions: dict[str, str]
    machine: Machine


def describe_machine(distributions: Sequence[str] = LIBRARIES) -> Surroundings:
    """Versions and machine, as kept with every result.

    Parameters
    ----------
    distributions : sequence of str
        Whose versions to name, after Python's.

    Returns
    -------
    Surroundings

    Examples
    --------
    >>> list(describe_machine(["numpy"])["versions"])
    ['python', 'numpy']
    """
    return {
        "versions": {"python": platform.python_version()} | {name: _find_version(name) for name in distributions},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": count_threads()},
    }


def _find_version(name: str) -> str:
    """Of what is installed; a clone of the repository that is not has the package's own."""
    try:
        return version(name)
    except PackageNotFoundError:
        if name != "derand":
            raise
        return derand.__version__
