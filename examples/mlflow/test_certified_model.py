"""The pyfunc answers as the model does, and its run has the report."""

from __future__ import annotations

from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
from certified_model import log_certified_model

import derand


def test_a_logged_model_predicts_and_certifies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # in place of a server
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"income": rng.lognormal(8, 0.5, 300), "job": rng.choice(["cook", "clerk"], 300)})
    truth = np.where(rows.income / 100 + (rows.job == "cook") * 10 > 38, "repaid", "default")
    clf = derand.AdditiveClassifier().fit(rows, truth)
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    experiment = mlflow.create_experiment("credit", artifact_location=(tmp_path / "artifacts").as_uri())
    with mlflow.start_run(experiment_id=experiment) as run:
        logged = log_certified_model(clf, rows, truth, what_if=False)
    loaded = mlflow.pyfunc.load_model(logged.model_uri)
    assert loaded.predict(rows)["label"].tolist() == clf.predict(rows).tolist()
    certified = loaded.predict(rows, params={"certify": True})
    assert certified["radius"].tolist() == clf.certify(rows).radius.tolist()
    listed = {one.path for one in mlflow.MlflowClient().list_artifacts(run.info.run_id, "report")}
    assert listed == {"report/one_page.html", "report/report.html"}
    page = Path(mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="report/one_page.html"))
    assert 'class="sign"' in page.read_text(encoding="utf-8")
