"""A model of derand in MLflow: a pyfunc that predicts and certifies, with the page to sign as an artifact.

import mlflow
from certified_model import log_certified_model

with mlflow.start_run():
    log_certified_model(clf, X_test, y_test, threat=threat)
mlflow.pyfunc.load_model(...).predict(X, params={"certify": True})
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
from mlflow.models import infer_signature, set_model
from mlflow.pyfunc import PythonModel, PythonModelContext

import derand

PARAMS = {"certify": False}


class CertifiedModel(PythonModel):
    """Labels, or labels with what is proven of them, by the model file that lies beside it: JSON, never pickle."""

    model: Any = None

    def load_context(self, context: PythonModelContext) -> None:
        self.model = derand.load(context.artifacts["model"])

    def predict(
        self, context: PythonModelContext, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> pd.DataFrame:
        if not {**PARAMS, **(params or {})}["certify"]:
            return pd.DataFrame({"label": self.model.predict(model_input)})
        found = self.model.certify(model_input)
        proven = {"radius": found.radius} if found.verdict is None else {"verdict": found.verdict}
        return pd.DataFrame({"label": found.label, **proven})


set_model(CertifiedModel())


def log_certified_model(clf: Any, X: pd.DataFrame, y: Any, *, name: str = "model", **report: Any) -> Any:
    """Log a fitted classifier to the run: the model, a report on some rows and its first page, and two figures.

    `report`: what else a `derand.Report` is asked for, such as `threat`.
    """
    page = derand.Report(clf, X, y, **report)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        derand.save(clf, place / "model.json")
        for file, one_page in (("report.html", False), ("one_page.html", True)):
            (place / file).write_text(page.to_html(one_page=one_page), encoding="utf-8")
            mlflow.log_artifact(str(place / file), "report")
        mlflow.log_metric("accuracy", float((clf.predict(X) == y).mean()))
        return mlflow.pyfunc.log_model(
            name=name,
            python_model=__file__,  # as code, which is no pickle
            artifacts={"model": str(place / "model.json")},
            signature=infer_signature(X, pd.DataFrame({"label": clf.predict(X)}), PARAMS),
            pip_requirements=[f"derand=={derand.__version__}", "mlflow-skinny", "pandas"],
        )
