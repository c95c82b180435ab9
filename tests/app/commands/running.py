"""How the tests run commands."""

from __future__ import annotations

import os
import subprocess
import sys

from typer.testing import CliRunner, Result

from derand.app import commands

RUNNER = CliRunner()


def run(*arguments: object) -> Result:
    return RUNNER.invoke(commands.app, [str(argument) for argument in arguments])


MAIN = (sys.executable, "-c", "from derand.app.commands import main; main()")


def run_process(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command as a user starts it."""
    command = [*MAIN, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "120"})


def run_in_shell(line: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The command in a line of a shell, in which it is called "$@"."""
    command = ["sh", "-c", line, "sh", *MAIN, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def read_help(command: str) -> str:
    """The help of a command on one line, without frames."""
    words = run(command, "--help").output.replace("\N{BOX DRAWINGS LIGHT VERTICAL}", " ").split()
    return " ".join(words)
