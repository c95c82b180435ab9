"""The page of all options, written from the commands and settings of the program."""

from __future__ import annotations

from collections.abc import Iterator

import typer

from derand.app import settings
from derand.app.commands import app
from derand.app.jobs import choose_model
from derand.app.settings import list_options
from derand.estimators import REGRESSORS, TRAINERS
from derand.noise import NOISES

OPENING = """# All options

Generated from the program. `derand COMMAND --help` prints the same. An option that may be given several times says so.
"""
LISTS = {"{NOISES}": NOISES, "{TRAINERS}": TRAINERS, "{REGRESSORS}": REGRESSORS, "{DEFAULT_MODEL}": [choose_model()]}


def write_options() -> str:
    """The page as Markdown: one table per command, and the keys of `derand.toml`."""
    return "\n".join([OPENING, *_list_commands(), *_list_keys()])


def _list_commands() -> Iterator[str]:
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        context = command.make_context(name, [], resilient_parsing=True)
        yield f"## derand {name}\n\n{(command.help or '').splitlines()[0]}\n\n| option | meaning |\n|---|---|"
        for parameter in command.get_params(context):
            record = parameter.get_help_record(context)
            if record and parameter.name != "help":
                yield f"| `{_escape(record[0])}` | {_escape(_fill(record[1]))} |"
        yield ""


def _list_keys() -> Iterator[str]:
    yield "## Keys of derand.toml\n\n| section | key | meaning |\n|---|---|---|"
    kinds = [one for one in vars(settings).values() if isinstance(one, type) and getattr(one, "SECTION", "")]
    found = [option for one in kinds for _, option in list_options(one) if option.key is not None]
    sections = list(dict.fromkeys(["data", *(str(option.section) for option in found)]))
    for option in sorted(found, key=lambda option: sections.index(str(option.section))):
        yield f"| `{option.section}` | `{option.key}` | {_escape(_fill(option.help))} |"
    yield "\n`[threat]` takes the fields of [a threat in a file](threats.md#in-commands-and-files).\n"


def _fill(text: str) -> str:
    for name, values in LISTS.items():
        text = text.replace(name, ", ".join(values))
    return text


def _escape(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
