"""How the tests run `python -m experiments`: here, or in a process of its own, its output piped."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pytest

from derand.app.commands import run_app
from experiments.__main__ import app

ROOT = Path(__file__).resolve().parents[3]


def run_command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command from the root of the repository, with some variables set, in a process of its own."""
    command = [sys.executable, "-m", "experiments", *arguments]
    variables = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=variables)


def run_here(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The same in this process, where it is not the process that is tested: it need not import everything anew."""
    output, errors = StringIO(), StringIO()
    line = ["experiments", *arguments]
    with (
        patch.object(sys, "argv", line),
        patch.dict(os.environ, environment),
        redirect_stdout(output),
        redirect_stderr(errors),
        pytest.raises(SystemExit) as end,
    ):
        run_app(app)
    return subprocess.CompletedProcess(line, int(end.value.code or 0), output.getvalue(), errors.getvalue())
