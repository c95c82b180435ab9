"""One declaration of options: fields, flags, keys, parameters of estimators and documents agree."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import typer

from derand.app import settings
from derand.app.commands import app
from derand.app.settings import OF_TABLE, TrainSettings, list_options
from derand.app.values import KINDS
from derand.certificates import RULES
from derand.estimators import REGRESSORS, TRAINERS
from derand.threat_text import NORMS

ROOT = Path(__file__).parents[2]
VERBS = [one for one in vars(settings).values() if isinstance(one, type) and hasattr(one, "SECTION")]
FLAGS = {
    name: {flag for one in command.params for flag in one.opts}
    for name, command in typer.main.get_command(app).commands.items()  # type: ignore[attr-defined]
}
IN_PYTHON_ALONE = {
    "categorical_features", "categorical_leaf", "learning_rate", "levels", "max_entropy", "max_iter",
    "max_stumps_per_feature", "n_cuts", "n_estimators", "n_iter_no_change", "n_jobs", "n_rounds", "quantile",
    "random_state", "scaling", "split_step", "tol", "validation_fraction", "verbose",
}  # fmt: skip
"""Parameters of estimators that `derand train` does not have, or sets by the table."""


@pytest.mark.parametrize("trainer", [*TRAINERS.values(), *REGRESSORS.values()], ids=lambda one: one.__name__)
def test_every_parameter_of_an_estimator_is_an_option_or_named_as_none(trainer: type) -> None:
    """The constructor owns name and default; what help shows of a plain default is the constructor's."""
    options = {one.name: option for one, option in list_options(TrainSettings)}
    parameters = trainer().get_params(deep=False)
    assert set(parameters) - IN_PYTHON_ALONE <= set(options) - set(OF_TABLE)
    if trainer in (TRAINERS["additive"], REGRESSORS["additive"]):
        shown = {name: options[name].shown for name in ("radius", "norm", "l0")}
        assert shown == {name: f"{parameters[name]:g}" for name in shown}


def test_every_option_of_training_is_a_parameter_of_some_estimator() -> None:
    known = {name for one in (*TRAINERS.values(), *REGRESSORS.values()) for name in one().get_params(deep=False)}
    assert {one.name for one, _ in list_options(TrainSettings)} - set(OF_TABLE) <= known


@pytest.mark.parametrize("verb", VERBS, ids=lambda one: one.__name__)
def test_every_option_is_declared_in_full(verb: type) -> None:
    """A sentence of help, a kind that can be written, choices of the registries, and a flag and a key of its own."""
    options = [option for _, option in list_options(verb)]
    assert options
    for one, option in list_options(verb):
        assert option.help.endswith("."), one.name
        assert option.kind in KINDS, one.name
        assert one.name != "rule" or (callable(option.choices) and tuple(option.choices()) == tuple(RULES))
        assert one.name != "norm" or set(option.choices) <= set(NORMS)  # type: ignore[arg-type]
    flags = [option.flag for option in options if option.flag is not None]
    keys = [(option.section, option.key) for option in options if option.key is not None]
    assert max([*Counter(flags).values(), *Counter(keys).values()]) == 1


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda one: one.name)
def test_commands_of_documents_have_the_options_that_they_name(page: Path) -> None:
    """Lines of code that begin with `derand`, those that go on after a backslash among them."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in re.findall(r"^(?:\$ )?derand ([a-z].*)$", text, flags=re.MULTILINE):
        command, *words = shlex.split(line, comments=True)
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert given <= FLAGS[command] | {"--help"}, line


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["certify", "--help"], ["report", "--help"]])
def test_help_needs_no_heavy_library(arguments: list[str]) -> None:
    """Neither scikit-learn nor numba is imported."""
    program = (
        "import sys; from derand.app.commands import app; sys.argv = ['derand', *sys.argv[1:]]\n"
        "app(standalone_mode=False)\n"
        "print(sorted({'sklearn', 'numba', 'scipy', 'pyarrow'} & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
