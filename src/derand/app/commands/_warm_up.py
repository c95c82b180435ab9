"""`derand warm-up`: compile everything once, for an image or a fresh machine."""

from __future__ import annotations

from derand.app import Summary
from derand.app.commands._app import (
    AsJson,
    add_command,
    make_console,
    make_table,
    print_facts,
    print_result,
    show_steps,
)

_COLUMNS = ("what", "functions", "CPU seconds")


@add_command
def warm_up(as_json: AsJson = False) -> None:
    """Compile nearly all that the first use compiles, such as in the build of an image; it is found on disk later."""
    with show_steps("compiling") as tell:
        from derand.app.warm_up import run_warm_up

        result = run_warm_up(tell)
    print_result(result, as_json, _print_result)


def _print_result(result: Summary) -> None:
    console = make_console()
    rows = [(step["name"], str(step["compiled"]), f"{step['seconds']:.1f}") for step in result["steps"]]
    console.print(make_table("Compiled", _COLUMNS, rows, right=_COLUMNS[1:]))
    print_facts(
        console,
        {
            "in all": f"{result['compiled']} functions in {result['seconds']:.1f} s of CPU",
            "kept in": ", ".join(result["folders"]) or "no folder: set NUMBA_CACHE_DIR to one of your own",
        },
    )
