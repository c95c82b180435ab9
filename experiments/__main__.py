"""`python -m experiments`: one command per file of `experiments.commands`."""

from __future__ import annotations

from derand.app.commands import clear_errors, make_app, run_app
from experiments.commands import COMMANDS

app = make_app("python -m experiments", "Benchmarks of derand, and the paper's tables and figures beside our numbers.")
for command in COMMANDS:
    app.command()(clear_errors(command))

if __name__ == "__main__":
    run_app(app)
