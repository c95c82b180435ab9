"""From files to files: settings, jobs, and the command line.

`settings` says what each verb can be asked for and `values` how that is written. `jobs/` does it with files, `run/`
does all that a `derand.toml` says, `commands/` is the command line over them. `demo` and `warm_up` need no table.
"""

from collections.abc import Callable

from derand._core.text import Facts

Spell = Callable[[str], str]
"""How a parameter is named in errors."""
Summary = Facts
"""What a job tells: plain numbers, text, lists and dicts, which `--json` prints as they are."""


def quote_parameter(parameter: str) -> str:
    """A parameter as errors of Python functions name it."""
    return f"`{parameter}`"
