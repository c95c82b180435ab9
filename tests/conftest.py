"""Hypothesis profiles: `default` repeats few examples on every run; `many`, `long` and `fuzz` draw fresh ones.

Choose one with HYPOTHESIS_PROFILE; running only the tests marked `long` selects the long one. `make test-long` runs all
other properties by `many`, and `make fuzz` takes `fuzz`, whose number of examples is $FUZZ_EXAMPLES.
"""

from __future__ import annotations

import functools
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from derand.kernels import BACKENDS, has_gpu
from tests.compiled import hash_compiled

_STATE = hash_compiled(Path(__file__).parent.parent / "src" / "derand")  # one cache for each state of the sources


def _make_private(name: str) -> Path:
    """A folder for temporary files that others cannot write, of this name if it is ours: numba runs what it finds."""
    folder = Path(tempfile.gettempdir()) / f"{name}-{getattr(os, 'getuid', int)()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    is_ours = os.name != "posix" or (stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid())
    return folder if is_ours and (os.name != "posix" or not found.st_mode & 0o022) else Path(tempfile.mkdtemp())


if "NUMBA_CACHE_DIR" not in os.environ:
    os.environ["NUMBA_CACHE_DIR"] = str(_make_private(f"derand-kernels-{_STATE}"))

_COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}
settings.register_profile("default", max_examples=30, derandomize=True, **_COMMON)
settings.register_profile("many", max_examples=400, **_COMMON)
settings.register_profile("long", max_examples=2000, **_COMMON)
settings.register_profile("fuzz", max_examples=int(os.environ.get("FUZZ_EXAMPLES", "3000")), **_COMMON)


def pytest_configure(config: pytest.Config) -> None:
    chosen = "long" if config.getoption("markexpr", "") == "long" else "default"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", chosen))


@pytest.fixture(scope="session", autouse=True)
def _tested_machine() -> Iterator[None]:
    """Audits test the machine's arithmetic each time, which takes longer than most claims: here they do so once."""
    from derand.auditing import _audit, check_machine

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_audit, "check_machine", functools.cache(check_machine))
        yield


_HERE = [name for name in BACKENDS if name != "cuda" or has_gpu()]


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.gpu) if name == "cuda" else name for name in _HERE])
def backend(request: pytest.FixtureRequest) -> str:
    """Every backend in turn; the GPU's where there is one (tests/kernels/cuda says where there is none)."""
    return str(request.param)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the documentation site, built strictly."""
    for library in ("mkdocstrings", "material", "latex2mathml"):
        pytest.importorskip(library, reason="the extra `docs` is not installed")
    folder = tmp_path_factory.mktemp("documentation") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment, root = os.environ | {"NO_MKDOCS_2_WARNING": "1"}, Path(__file__).parent.parent
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder
