"""Options of a command from the fields of a settings class. Must not know any command, nor what settings do."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import Field, is_dataclass
from typing import Annotated, Any

import typer

from derand._core.text import Facts
from derand.app.settings import Option, list_options
from derand.app.values import KINDS, require_choice

argument = functools.partial(typer.Argument, show_default=False)
"""What a command needs, without a flag."""


def output(help: str) -> Any:
    """The option --output."""
    return typer.Option("--output", "-o", help=help, show_default=False)


def take_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command have the fields of each parameter that is a settings class as options, in its place."""
    own = inspect.signature(command, eval_str=True)
    classes = {name: one.annotation for name, one in own.parameters.items() if is_dataclass(one.annotation)}

    @functools.wraps(command)
    def run(**given: object) -> None:
        for name, settings in classes.items():
            given[name] = _make_settings(settings, given)  # type: ignore[arg-type]
        command(**given)

    made: list[inspect.Parameter] = []
    for name, one in own.parameters.items():
        options = list_options(classes[name]) if name in classes else ()  # type: ignore[arg-type]
        made += [_make_parameter(*option) for option in options if option[1].flag is not None]
        made += [] if name in classes else [one.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
    run.__signature__ = own.replace(parameters=made)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in made}
    return run


def _make_parameter(one: Field[Any], option: Option) -> inspect.Parameter:
    """An option of a command; what is not given is None, or what the field's own default is where help shows that."""
    kind, default = KINDS[option.kind].type, None if option.shown else one.default or None
    if option.kind == "truth":
        default = False
    elif default is None:
        kind |= None
    flags = ["--output", "-o"] if option.flag == "--output" else [str(option.flag)]
    help = option.help if option.unit is None else f"{option.help} In {option.unit}."
    shown: Any = option.shown if option.shown is not None else default is not None
    made = typer.Option(*flags, metavar=option.metavar, help=help, show_default=shown, min=option.least)
    return inspect.Parameter(
        one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, made]
    )


def _make_settings(settings: type, given: Facts) -> object:
    """The settings that are given; their options leave `given`."""
    found: Facts = {}
    for one, option in list_options(settings):
        value = None if option.flag is None else given.pop(one.name)
        if option.flag is None or value is None or value == [] or (option.kind == "truth" and not value):
            continue
        if option.choices:
            require_choice(option.flag, value, option.choices() if callable(option.choices) else option.choices)
        value = KINDS[option.kind].parse(value, option.flag, option)
        found[one.name] = not one.default if option.kind == "truth" else value
    return settings(**found)
