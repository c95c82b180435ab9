"""`derand export`: the base score of a saved model as ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from derand.app import Summary
from derand.app.commands._app import AsJson, add_command, make_console, print_facts, print_result, show_progress
from derand.app.commands._options import argument, output

_SHOWN_INPUTS = 12


@add_command
def export(
    model: Annotated[Path, argument(help="A model that derand saved.")],
    output: Annotated[Path, output("Where to write it (.onnx).")],
    as_json: AsJson = False,
) -> None:
    """Write the score of a model, without smoothing, as ONNX, for those who serve it elsewhere.

    Scores and labels equal the model's own to the last bit; where onnxruntime is installed, that is checked on every
    edge before anything is written. Needs onnx, the extra "onnx".
    """
    with show_progress("exporting"):
        from derand.app.jobs import export_file

        summary = export_file(model, output)
    print_result(summary, as_json, _print_summary)


def _print_summary(summary: Summary) -> None:
    inputs = summary["inputs"]
    more = f", ... ({len(inputs)} in all)" if len(inputs) > _SHOWN_INPUTS else ""
    facts = {
        "exported": f"{summary['kind']}, {summary['terms']:,} terms",
        "inputs": ", ".join(inputs[:_SHOWN_INPUTS]) + more,
        "outputs": ", ".join(summary["outputs"]),
        "checked": f"onnxruntime gives the same on {summary['checked_rows']:,} rows, to the last bit"
        if summary["checked_rows"]
        else "no: onnxruntime is not installed",
        "probabilities": ""
        if summary["probability_error"] is None
        else f"differ by {summary['probability_error']:.1e} there at most",
        "smoothing": ""
        if summary["noise"] == "none"
        else f"left out ({summary['noise']}): `derand certify --noise none --rule mean` speaks of what is written",
        "written": f"{summary['output']} ({summary['bytes']:,} bytes)",
        "time": f"{summary['seconds']:.1f} s",
    }
    print_facts(make_console(), {name: text for name, text in facts.items() if text})
