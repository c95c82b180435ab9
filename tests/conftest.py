"""Hypothesis profiles: `default` repeats the same examples on every run, `long` draws many fresh ones.

Choose one with HYPOTHESIS_PROFILE; running only the tests marked `long` selects the long one.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from derand.kernels import BACKENDS, has_gpu

_COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}
settings.register_profile("default", max_examples=120, derandomize=True, **_COMMON)
settings.register_profile("long", max_examples=2000, **_COMMON)


def pytest_configure(config: pytest.Config) -> None:
    chosen = "long" if config.getoption("markexpr", "") == "long" else "default"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", chosen))


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.gpu) if name == "cuda" else name for name in BACKENDS])
def backend(request: pytest.FixtureRequest) -> str:
    """Every backend in turn; the GPU's where there is one."""
    if request.param == "cuda" and not has_gpu():
        pytest.skip("no CUDA device here")
    return str(request.param)
