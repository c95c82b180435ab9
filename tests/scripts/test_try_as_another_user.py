"""Another user of the machine gets at nothing of a job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent.parent / "scripts" / "try_as_another_user.py"


@pytest.mark.long
@pytest.mark.skipif(getattr(os, "geteuid", lambda: None)() != 0, reason="only root can become other users")
def test_another_user_gets_at_nothing() -> None:
    """Of processes, and of a cluster that is started here; of an unprotected one he does."""
    for library in ("distributed", "cryptography"):
        pytest.importorskip(library)
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
