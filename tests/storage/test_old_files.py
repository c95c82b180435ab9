"""Files of the schema "derand/1", one of each kind, written by the release that had it, load and certify the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from derand import certify, load, save
from derand.frames import TableEncoding

FILES = Path(__file__).parent / "files"
KINDS = ["additive_ensemble", "weighted_vote", "stumps", "tree_boost", "ada_boost"]


def read_case(kind: str) -> tuple[Path, dict[str, Any]]:
    return FILES / f"{kind}.derand-1.json", json.loads((FILES / f"{kind}.expected.json").read_text())


def certify_case(path: Path, expected: dict[str, Any]) -> Any:
    model = load(path)
    if expected["noise"] is not None:
        return certify(model, expected["rows"], expected["noise"], l0=[0, 1])
    return model.certify(pd.DataFrame(expected["rows"]), l0=[0, 1])


def assert_as_expected(found: Any, expected: dict[str, Any]) -> None:
    for k, certificates in enumerate(found):
        assert certificates.label.tolist() == expected["label"][k]
        for name in ("radius", "failure"):
            numbers = np.array([float(text) for text in expected[name][k]])
            np.testing.assert_allclose(getattr(certificates, name), numbers, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_an_old_file_certifies_as_it_did(kind: str) -> None:
    """Labels, failure masses and radii are those that were written down with the file."""
    path, expected = read_case(kind)
    assert json.loads(path.read_text())["schema"] == "derand/1"
    assert_as_expected(certify_case(path, expected), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_an_old_file_can_be_saved_anew(kind: str, tmp_path: Path) -> None:
    """Loaded and saved it has the new schema, and certifies the same."""
    path, expected = read_case(kind)
    save(load(path), tmp_path / "new.json")
    assert not getattr(load(path), "encoding_", TableEncoding(0, None, {})).whole  # nothing is known of whole numbers
    assert json.loads((tmp_path / "new.json").read_text())["schema"] == "derand/2"
    assert_as_expected(certify_case(tmp_path / "new.json", expected), expected)


def test_the_rounding_error_in_an_old_file_is_read_as_none() -> None:
    """Such a model is defined on its grid: the certificate is not to be widened by what rounding once moved."""
    path, _ = read_case("additive_ensemble")
    assert json.loads(path.read_text())["model"]["score_error"] > 0.4
    assert load(path).score_error == 0
