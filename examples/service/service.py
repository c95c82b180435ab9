"""A small HTTP service around a saved model: answers, certificates and explanations of one row at a time.

    derand warm-up
    DERAND_MODEL=model.json uvicorn service:app

`POST /predict`, `/certify` and `/explain` take {"row": {column: value, ...}}; null is a missing value. What cannot be
answered is status 422 with the reason. `DERAND_THREAT` names a TOML file of what may change (docs/threats.md); without
it that is what the model was trained against.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

import derand
from derand.threat_text import read_threat

Value = bool | int | float | str | None


class Row(BaseModel):
    """One row, by the names of the training table's columns."""

    row: dict[str, Value]


def make_app(model_file: str, threat_file: str | None = None) -> FastAPI:
    """The service of one model. Models are frozen: all threads share it."""
    model = derand.load(model_file)
    names = model.encoding_.names
    threat = None if threat_file is None else read_threat(threat_file, names, model.units)
    without_noise = {} if threat is None or threat.norm is not None else {"noise": "none", "rule": "mean"}
    app = FastAPI(title="derand")

    @app.exception_handler(ValueError)
    @app.exception_handler(TypeError)
    def refuse(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, status_code=422)

    @app.post("/predict")
    def predict(given: Row) -> dict[str, Any]:
        probabilities = model.predict_proba(given.row)[0]
        return {
            "label": as_json(model.predict(given.row)[0]),
            "probabilities": {str(name): float(one) for name, one in zip(model.classes_, probabilities, strict=True)},
        }

    @app.post("/certify")
    def certify(given: Row) -> dict[str, Any]:
        found = model.certify(given.row, threat=threat, **without_noise)
        answer = {"label": as_json(found.label[0])}
        if found.verdict is None:
            return {**answer, "radius": as_json(found.radius[0])}
        answer |= {"verdict": str(found.verdict[0]), "other_label": None, "changed_row": None}
        if found.flips[0]:
            changed = model.decode_rows(found.witness[[0]]).iloc[0]
            answer |= {
                "other_label": as_json(found.flipped[0]),
                "changed_row": {name: as_json(value) for name, value in changed.items()},
            }
        return answer

    @app.post("/explain")
    def explain(given: Row) -> dict[str, Any]:
        return {"text": str(model.explain(given.row))}

    return app


def as_json(value: Any) -> Any:
    """A number or a label as JSON has it: null for a missing one, "inf" where nothing flips the answer."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and not math.isfinite(plain):
        return "inf" if plain > 0 else None
    return plain


def __getattr__(name: str) -> FastAPI:
    """`app`, made when a server asks for it."""
    if name != "app":
        raise AttributeError(name)
    return make_app(os.environ["DERAND_MODEL"], os.environ.get("DERAND_THREAT"))
