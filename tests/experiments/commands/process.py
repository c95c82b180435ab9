"""`python -m experiments` in a process of its own, its output piped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def run_command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command from the root of the repository, with some variables set."""
    command = [sys.executable, "-m", "experiments", *arguments]
    variables = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=variables)
