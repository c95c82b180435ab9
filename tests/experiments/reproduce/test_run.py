"""Running: small tables carried out, interrupted, gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.reproduce import Report, reproduce, summarize
from experiments.reproduce._plans import make_plan
from experiments.reproduce._specification import find_item
from experiments.reproduce._store import Store
from tests.experiments.reproduce.examples import SMALL


def test_a_small_table_is_reproduced(report: Report) -> None:
    """Every cell agrees or is explained, and the exact rows agree with the paper."""
    assert report.ok
    exact = [cell for cell in report.cells if cell.fields["method"] != "sampling"]
    assert all(cell.ok for cell in exact)
    assert all(path.stat().st_size > 100 for path in report.files)


def test_a_second_run_computes_nothing(report: Report, tmp_path: Path) -> None:
    """Outcomes are used again, and the files come out the same."""
    before = [path.read_bytes() for path in report.files]
    told: list[int] = []
    reproduce([SMALL], tmp_path, on_progress=lambda done, total, text: told.append(total))
    assert told == [0]
    assert [path.read_bytes() for path in report.files] == before


def test_an_interrupted_run_goes_on(data: Path, tmp_path: Path) -> None:
    """What was done before the interruption is not done again."""

    def interrupt(done: int, total: int, text: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce([SMALL], tmp_path, on_progress=interrupt)
    told: list[int] = []
    reproduce([SMALL], tmp_path, on_progress=lambda done, total, text: told.append(total))
    assert told[0] == 21


def test_a_quick_run_uses_a_part_of_the_rows(data: Path, tmp_path: Path) -> None:
    """Fewer rows and one split, wider tolerances; results are kept apart from those of a full run."""
    (quick,) = reproduce(["tab:categorical"], tmp_path, quick=True)
    assert quick.quick
    assert all(cell.ok for cell in quick.cells)
    assert all((cell.tolerance or 0) > 5 for cell in quick.cells)
    outcomes = Store.open(tmp_path).read(make_plan(find_item("tab:categorical").lines[0].recipe))
    assert outcomes is None
    assert "a part of the rows" in summarize(quick)


def test_settings_need_no_data(tmp_path: Path) -> None:
    """A table of settings is shown as it is."""
    (settings,) = reproduce(["tab:details-treeboost"], tmp_path)
    assert len(settings.cells) == 8
    assert all(cell.ok and cell.ours == cell.paper for cell in settings.cells)


def test_a_missing_data_file_is_named_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says which file, where it comes from, its checksum and where to put it."""
    monkeypatch.setenv("DERAND_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    told: list[int] = []
    with pytest.raises(FileNotFoundError, match=r"breast_cancer.csv is missing.*sha256"):
        reproduce([SMALL], tmp_path / "results", on_progress=lambda done, total, text: told.append(total))
    assert not told


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["tab:joint-balanced", "tab:categorical", "tab:ablation-noise-magnitude-l2", "tab:timings"]
)
def test_tables_are_reproduced(name: str, data: Path, tmp_path: Path) -> None:
    """Every cell agrees with the paper or is explained by name."""
    (done,) = reproduce([name], tmp_path)
    assert done.ok, [cell.as_dict() for cell in done.cells if cell.ok is False and cell.reason is None]
