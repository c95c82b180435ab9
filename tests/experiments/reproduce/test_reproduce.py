"""The paper's tables: what the package holds of them, how recipes are read, and runs on small tables."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.reproduce import Report, list_names, render_document, reproduce
from experiments.reproduce._cells import Cell, make_cells, round_radii
from experiments.reproduce._outcomes import CERTIFIERS, TRAINERS, Outcome
from experiments.reproduce._plans import Plan, make_plan
from experiments.reproduce._render import render_latex, render_markdown, summarize
from experiments.reproduce._specification import (
    METRICS,
    Item,
    Line,
    find_item,
    fits,
    merge,
    read_items,
    read_reasons,
    resolve_recipe,
)
from experiments.reproduce._store import Store
from tests.shared import shared_folder

TABLES = [name for name in list_names() if name.startswith("tab:")]
FIGURES = [name for name in list_names() if name.startswith("fig:")]
DRAWINGS = ["fig:overview", "fig:metastump", "fig:categorical", "fig:cdf_loss"]
SMALL = "tab:l2-mle-ablation"


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the paper's datasets, announced to the package."""
    folder = shared_folder("data")
    monkeypatch.setenv("DERAND_DATA", str(folder))
    return folder


class TestSpecification:
    """What the TOML files hold."""

    def test_every_table_and_figure_is_there(self) -> None:
        """19 tables, 9 figures and the claims, each in a file of its own name."""
        assert (len(TABLES), len(FIGURES), list_names()[-1]) == (19, 9, "claims")
        for name, item in read_items().items():
            assert item.name == name
            assert item.title

    @pytest.mark.parametrize("name", TABLES)
    def test_published_numbers_are_those_of_the_paper(self, name: str) -> None:
        """Every printed number, with its fields, radius and deviation, is the one of the shared tables."""
        rows = json.loads((shared_folder("paper") / "tables.json").read_text(encoding="utf-8"))[name]["rows"]
        ours = [
            {**line.fields, "metric": one.metric, "radius": one.radius, "value": one.value, "std": one.deviation}
            for line in find_item(name).lines
            for one in line.published
        ]
        wanted = [
            {"metric": row.get("metric", row.get("parameter")), "radius": None, "std": None}
            | {key: value for key, value in row.items() if key not in ("parameter", "relation", "printed")}
            for row in rows
        ]

        def normalise(cells: list[dict[str, Any]]) -> list[str]:
            plain = [{key: value for key, value in cell.items() if value is not None} for cell in cells]
            return sorted(json.dumps(cell | {"value": float(cell["value"])}, sort_keys=True) for cell in plain)

        assert normalise(ours) == normalise(wanted)

    def test_the_rows_add_up(self) -> None:
        """All 2077 printed numbers are there."""
        assert sum(len(line.published) for name in TABLES for line in find_item(name).lines) == 2077

    @pytest.mark.parametrize("name", [name for name in TABLES if not find_item(name).is_settings])
    def test_every_line_has_a_plan(self, name: str) -> None:
        """A line's recipe names a trainer and a certifier that exist, and reasons that are described."""
        for line in find_item(name).lines:
            for recipe in (line.recipe, *line.variants):
                plan = make_plan(recipe)
                assert plan.trainer in TRAINERS
                assert plan.certifier in CERTIFIERS
            assert line.reason is None or line.reason in read_reasons()

    def test_settings_are_read_from_their_tables(self) -> None:
        """Noise that a line does not print comes from the table of noise levels, boosting's settings from theirs."""
        line = next(
            line for line in find_item("tab:error-bounds-extensive").lines if line.fields["dataset"] == "diabetes"
        )
        assert make_plan(line.recipe).noise == "uniform:0.35"
        boosted = [line for line in find_item("tab:baseline-both").lines if line.fields["method"] == "robtreeboost"]
        assert [line.recipe["training"]["quantile"] for line in boosted] == [0.6, 0.7, 0.98, 0.95]
        assert [line.recipe["training"]["n_estimators"] for line in boosted] == [30, 15, 40, 100]

    def test_printed_noise_agrees_with_the_settings(self) -> None:
        """Where a line prints its noise and a table of settings has one, they are equal."""
        for line in find_item("tab:baseline-both").lines:
            assert line.fields.get("noise") == line.recipe.get("noise")

    def test_quirks_are_named_options(self) -> None:
        """The identifier as a feature, cut numbers and counting above r stand where the paper has them."""
        plans = {
            line.fields["dataset"]: (make_plan(line.recipe), line.recipe["counting"])
            for name in ("tab:baseline-both", "tab:joint-cv-balanced-l2")
            for line in find_item(name).lines
        }
        assert plans["breast_cancer"][0].dataset == "breast_cancer_with_id"
        assert [name for name, (plan, _) in plans.items() if plan.cut_numbers] == ["mammographic"]
        assert {name for name, (_, counting) in plans.items() if counting == "above"} == {
            "adult",
            "credit",
            "mammographic",
            "bank",
        }

    def test_lines_that_need_the_same_model_share_a_plan(self) -> None:
        """The lines of a joint table that differ in changed categories alone have one plan."""
        lines = [line for line in find_item("tab:joint-cv-balanced-l2").lines if line.fields["dataset"] == "adult"]
        assert len(lines) > len({make_plan(line.recipe).key for line in lines}) == 3

    def test_an_unknown_name_gets_a_suggestion(self) -> None:
        """The nearest name is suggested; the prefix may be left out."""
        with pytest.raises(ValueError, match="Did you mean 'tab:baseline-both'"):
            find_item("tab:baseline-bth")
        with pytest.raises(ValueError, match="Did you mean 'fig:joint-ca'"):
            find_item("joint-c")
        assert find_item("timings").name == "tab:timings"

    def test_later_rules_win_and_tables_within_are_merged(self) -> None:
        """A rule of the file comes after the common ones; what it does not name stays."""
        content = {"rules": [{"when": {"dataset": "diabetes"}, "set": {"scaling": "none", "training": {"levels": 7}}}]}
        recipe = resolve_recipe(content, {"dataset": "diabetes", "norm": "l1", "noise": 1.0})
        assert recipe["scaling"] == "none"
        assert recipe["training"] == {"class_weight": "balanced", "levels": 7, "split_step": 0.01}

    def test_a_rule_fits_where_all_its_values_do(self) -> None:
        """A list names alternatives; a missing field does not fit."""
        assert fits({"a": [1, 2], "b": True}, {"a": 2, "b": True, "c": 0})
        assert not fits({"a": 1}, {"b": 1})
        assert merge({"a": {"b": 1}}, {"a": 2}) == {"a": 2}

    def test_metrics_are_no_fields(self) -> None:
        """No line's identifying field carries the name of a metric."""
        assert not {field for name in TABLES for line in find_item(name).lines for field in line.fields} & set(METRICS)


def make_outcome(radius: list[float], correct: list[bool] | None = None) -> Outcome:
    n_rows = len(radius)
    label = np.ones(n_rows, dtype=np.int64)
    y = label if correct is None else np.where(correct, label, 0)
    return Outcome(y, label, np.array([radius]), np.empty(0), np.array([1.0, 2.0]))


def make_line(metric: dict[str, Any], **recipe: Any) -> tuple[Item, Line, Plan]:
    """A line of a made-up table on diabetes, l2 with sigma 1."""
    fields = {"norm": "l2", "dataset": "diabetes", "noise": 1.0}
    content = {"name": "tab:made-up", "title": "made up", "recipe": recipe, "lines": [{**fields, **metric}]}
    item = Item("tab:made-up", "made up", content)
    line = replace(item.lines[0], variants=(), reason=None)
    return item, line, make_plan(line.recipe)


class TestCells:
    """Comparing outcomes with printed numbers."""

    def compare(self, radius: list[float], metric: dict[str, Any], **recipe: Any) -> Cell:
        item, line, plan = make_line(metric, **recipe)
        (cell,) = make_cells(item, line, plan, [make_outcome(radius)], [])
        return cell

    def test_a_near_number_is_within_tolerance(self) -> None:
        """0.3 points are allowed, from the number as printed."""
        radii = [1.0] * 899 + [0.1] * 101
        assert self.compare(radii, {"ca": {"1.0": 90.2}}).ok
        assert self.compare(radii, {"ca": {"1.0": 90.3}}).ok is False

    def test_rounded_radii_are_recognised(self) -> None:
        """Where three digits restore the printed number, that is the reason; ours stays exact."""
        cell = self.compare([0.9999] * 50 + [2.0] * 50, {"ca": {"1.0": 100.0}})
        assert (cell.ours, cell.ok, cell.reason, cell.as_published) == (50.0, False, "rounding", 100.0)

    def test_the_cap_is_recognised(self) -> None:
        """Radii beyond 7.94 sigma are beyond the published cap."""
        cell = self.compare([9.0] * 100, {"ca": {"8.0": 0.0}})
        assert (cell.ours, cell.reason) == (100.0, "cap")

    def test_constant_models_are_recognised(self) -> None:
        """An infinite average radius against the cap."""
        cell = self.compare([np.inf] * 100, {"acr": 7.941})
        assert (cell.ours, cell.ok, cell.reason) == (np.inf, False, "constant")
        assert cell.as_dict()["ours"] == "inf"

    def test_what_nothing_restores_has_no_reason(self) -> None:
        """A difference without an explanation is not explained away."""
        cell = self.compare([0.5] * 100, {"ca": {"1.0": 50.0}})
        assert (cell.ok, cell.reason) == (False, None)

    def test_larger_is_welcome_where_the_side_says_so(self) -> None:
        """A wider tolerance forgives any rise and a small fall, and says why there is a difference."""
        tolerance = {"wider": {"rows": 3, "side": "below", "reason": "slip"}}
        better = self.compare([1.0] * 100, {"ca": {"1.0": 50.0}}, tolerance=tolerance)
        assert (better.ok, better.reason) == (True, "slip")
        near = self.compare([1.0] * 47 + [0.5] * 53, {"ca": {"1.0": 50.0}}, tolerance=tolerance)
        assert (near.ok, near.tolerance) == (True, 3.0)
        assert not self.compare([1.0] * 46 + [0.5] * 54, {"ca": {"1.0": 50.0}}, tolerance=tolerance).ok

    def test_ties_count_where_equality_does(self) -> None:
        """A radius of exactly r counts in numerical tables; in joint ones it is a tie."""
        assert self.compare([1.0] * 100, {"ca": {"1.0": 100.0}}).ok
        joint = self.compare([1.0] * 100, {"ca": {"1.0": 60.0}}, counting="above", published_rounding=False)
        assert (joint.ours, joint.ok, joint.reason) == (0.0, False, "ties")

    def test_deviations_widen_the_tolerance(self) -> None:
        """With folds one published deviation is allowed."""
        item, line, plan = make_line({"ca": {"0.0": [97.0, 3.5]}}, evaluation="folds")
        outcomes = [make_outcome([1.0] * 10, [True] * 10), make_outcome([1.0] * 10, [True] * 9 + [False])]
        (cell,) = make_cells(item, line, plan, outcomes, [])
        assert (cell.ours, cell.deviation, cell.tolerance, cell.ok) == (95.0, 5.0, 3.5, True)

    def test_wrong_rows_count_nothing(self) -> None:
        """A wrong row counts 0 in the average radius and in certified accuracy; balanced accuracy weighs classes."""
        item, line, plan = make_line({"acr": 0.5, "ca": {"0.0": 50.0}, "bca": {"0.0": 50.0}})
        cells = make_cells(item, line, plan, [make_outcome([1.0] * 4, [True, True, False, False])], [])
        assert [cell.ours for cell in cells] == [0.5, 50.0, 50.0]

    def test_variants_restore_numbers(self) -> None:
        """A number that another way of training restores has that way as its reason; seeds give a range."""
        item, line, plan = make_line({"ca": {"1.0": 50.0}})
        line = replace(line, reason="seed")
        variants = [[make_outcome([1.0] * count + [0.5] * (100 - count))] for count in (40, 60)]
        (cell,) = make_cells(item, line, plan, [make_outcome([0.5] * 100)], variants)
        assert cell.reason == "seed"

    def test_radii_are_rounded_to_three_digits(self) -> None:
        """As the published runs printed them."""
        assert round_radii(np.array([0.0, 3.9951, 12.345, 0.0012345, np.inf])).tolist() == [
            0.0,
            4.0,
            12.3,
            0.00123,
            np.inf,
        ]


@pytest.fixture
def report(data: Path, tmp_path: Path) -> Report:
    """A small table carried out."""
    (done,) = reproduce([SMALL], tmp_path)
    return done


class TestRuns:
    """Carrying out small tables."""

    def test_a_small_table_is_reproduced(self, report: Report) -> None:
        """Every cell agrees or is explained, and the exact rows agree with the paper."""
        assert report.ok
        exact = [cell for cell in report.cells if cell.fields["method"] != "sampling"]
        assert all(cell.ok for cell in exact)
        assert all(path.stat().st_size > 100 for path in report.files)

    def test_files_hold_all_cells(self, report: Report) -> None:
        """Markdown, LaTeX and JSON have one line per cell and mark what is outside."""
        markdown, latex, plain = (path.read_text(encoding="utf-8") for path in report.files)
        assert markdown == render_markdown(report)
        assert latex == render_latex(report)
        assert markdown.count("| l2 |") == len(report.cells) == latex.count("l2 & breast")
        cells = json.loads(plain)["cells"]
        assert {"paper", "ours", "difference", "ok", "reason"} <= set(cells[0])
        assert markdown.count("outside: seed") == sum(cell["ok"] is False for cell in cells)
        assert r"breast\_cancer" in latex
        assert "within tolerance" in summarize(report)

    def test_provenance_is_kept(self, report: Report) -> None:
        """Versions, checksums, the seed and the time are in the report and beside every outcome."""
        assert {"versions", "machine", "seconds", "seed", "data_sha256"} <= set(report.provenance)
        notes = list((report.files[0].parent.parent / "outcomes").glob("*.json"))
        assert len(notes) == 23  # mle and its variant, default, sampling with twenty seeds
        note = json.loads(notes[0].read_text(encoding="utf-8"))
        assert {"plan", "seed", "seconds", "finished", "derand", "data_sha256", "versions"} <= set(note)

    def test_a_second_run_computes_nothing(self, report: Report, tmp_path: Path) -> None:
        """Outcomes are used again, and the files come out the same."""
        before = [path.read_bytes() for path in report.files]
        told: list[int] = []
        reproduce([SMALL], tmp_path, on_progress=lambda done, total, text: told.append(total))
        assert told == [0]
        assert [path.read_bytes() for path in report.files] == before

    def test_an_interrupted_run_goes_on(self, data: Path, tmp_path: Path) -> None:
        """What was done before the interruption is not done again."""

        def interrupt(done: int, total: int, text: str) -> None:
            if done == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            reproduce([SMALL], tmp_path, on_progress=interrupt)
        told: list[int] = []
        reproduce([SMALL], tmp_path, on_progress=lambda done, total, text: told.append(total))
        assert told[0] == 21

    def test_damaged_and_stale_outcomes_are_computed_again(self, report: Report, tmp_path: Path) -> None:
        """A cut file, and one of another version, count as missing."""
        plans = [make_plan(line.recipe) for line in find_item(SMALL).lines]
        store = Store.open(tmp_path)
        arrays = tmp_path / "outcomes" / f"{plans[0].key}.npz"
        arrays.write_bytes(arrays.read_bytes()[:200])
        note = tmp_path / "outcomes" / f"{plans[2].key}.json"
        note.write_text(note.read_text(encoding="utf-8").replace('"derand": "', '"derand": "9'), encoding="utf-8")
        assert [store.read(plan) is None for plan in plans] == [True, False, True]
        told: list[int] = []
        reproduce([SMALL], tmp_path, on_progress=lambda done, total, text: told.append(total))
        assert told[0] == 2

    def test_a_quick_run_uses_a_part_of_the_rows(self, data: Path, tmp_path: Path) -> None:
        """Fewer rows and one split, wider tolerances; results are kept apart from those of a full run."""
        (quick,) = reproduce(["tab:categorical"], tmp_path, quick=True)
        assert quick.quick
        assert all(cell.ok for cell in quick.cells)
        assert all((cell.tolerance or 0) > 5 for cell in quick.cells)
        outcomes = Store.open(tmp_path).read(make_plan(find_item("tab:categorical").lines[0].recipe))
        assert outcomes is None
        assert "a part of the rows" in summarize(quick)

    def test_settings_need_no_data(self, tmp_path: Path) -> None:
        """A table of settings is shown as it is."""
        (settings,) = reproduce(["tab:details-treeboost"], tmp_path)
        assert len(settings.cells) == 8
        assert all(cell.ok and cell.ours == cell.paper for cell in settings.cells)

    def test_a_missing_data_file_is_named_before_anything_runs(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The error says which file, where it comes from, its checksum and where to put it."""
        monkeypatch.setenv("DERAND_DATA", str(tmp_path))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        told: list[int] = []
        with pytest.raises(FileNotFoundError, match=r"breast_cancer.csv is missing.*sha256"):
            reproduce([SMALL], tmp_path / "results", on_progress=lambda done, total, text: told.append(total))
        assert not told

    def test_a_corrupted_data_file_is_refused(
        self, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A file with another checksum is not used."""
        shutil.copy(data / "mammographic.csv", tmp_path)
        with (tmp_path / "mammographic.csv").open("a", encoding="ascii") as stream:
            stream.write("5,67,3,5,3,1\n")
        monkeypatch.setenv("DERAND_DATA", str(tmp_path))
        item = find_item("tab:joint-cv-balanced-l2")
        line = next(line for line in item.lines if line.fields["dataset"] == "mammographic")
        from experiments.reproduce._outcomes import _load, carry_out

        _load.cache_clear()
        with pytest.raises(ValueError, match=r"sha256 is .*expected"):
            carry_out(make_plan(line.recipe))

    def test_a_results_folder_that_is_a_file_is_refused(self, tmp_path: Path) -> None:
        """The error names the folder."""
        (tmp_path / "results").write_text("", encoding="utf-8")
        with pytest.raises(OSError, match=r"Cannot use .*results as a results folder"):
            reproduce(["tab:details-treeboost"], tmp_path / "results")

    def test_the_document_explains_what_is_outside(self, report: Report) -> None:
        """Every cell outside its tolerance is listed under its reason, none under "Not explained"."""
        text = render_document([report])
        assert read_reasons()["seed"]["title"] in text
        assert "Not explained" not in text
        assert f"`{SMALL}`" in text


class TestFigures:
    """Drawing."""

    @pytest.mark.parametrize("name", DRAWINGS)
    def test_drawings_need_no_data(self, name: str, tmp_path: Path) -> None:
        """Figures of small models are drawn as SVG and PNG, the same each time."""
        (first,) = reproduce([name], tmp_path / "a")
        (second,) = reproduce([name], tmp_path / "b")
        assert [path.suffix for path in first.files] == [".svg", ".png"]
        assert first.files[0].read_bytes() == second.files[0].read_bytes()
        assert first.files[1].read_bytes().startswith(b"\x89PNG")

    def test_curves_show_the_published_numbers(self, data: Path, tmp_path: Path) -> None:
        """A figure of outcomes has a curve per line, and dots where the paper prints numbers."""
        (figure,) = reproduce(["fig:joint-ca"], tmp_path, quick=True)
        svg = figure.files[0].read_text(encoding="utf-8")
        assert svg.count("<use") > 30
        assert figure.ok


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["tab:joint-balanced", "tab:categorical", "tab:ablation-noise-magnitude-l2", "tab:timings"]
)
def test_tables_are_reproduced(name: str, data: Path, tmp_path: Path) -> None:
    """Every cell agrees with the paper or is explained by name."""
    (done,) = reproduce([name], tmp_path)
    assert done.ok, [cell.as_dict() for cell in done.cells if cell.ok is False and cell.reason is None]


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`derand reproduce` in a process of its own, its output piped."""
    command = [sys.executable, "-c", "from derand.cli import main; main()", "reproduce", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class TestCommand:
    """The command line."""

    def test_a_pipe_gets_bare_names(self) -> None:
        """`--list` prints one name per line and nothing else."""
        done = run_command("--list")
        assert done.stdout.splitlines() == list_names()
        assert not done.stderr

    def test_json_holds_paper_ours_and_ok(self, tmp_path: Path) -> None:
        """`--json` prints the cells."""
        done = run_command("tab:details-noise-levels", "--json", "--results", str(tmp_path))
        (table,) = json.loads(done.stdout)
        assert {"paper", "ours", "ok"} <= set(table["cells"][0])
        assert len(table["cells"]) == 20

    def test_a_summary_is_written(self, tmp_path: Path) -> None:
        """`--document` writes the summary of what was carried out."""
        target = tmp_path / "summary.md"
        done = run_command("details-treeboost", "--results", str(tmp_path / "results"), "--document", str(target))
        assert done.returncode == 0
        assert "within tolerance" in done.stdout
        assert "tab:details-treeboost" in target.read_text(encoding="utf-8")

    def test_an_interruption_says_how_to_go_on(self, data: Path, tmp_path: Path) -> None:
        """Exit code 130, and what is done is kept."""
        code = "from derand.cli import main; main()"
        arguments = ["reproduce", "tab:joint-cv-balanced-l1", "--results", str(tmp_path)]
        process = subprocess.Popen([sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob("outcomes/*.json")) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, message = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "run the same command again to go on" in message

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["tab:baseline-bot"], "Did you mean 'tab:baseline-both'?"),
            ([], "give --all"),
            (["claims", "--all"], "not both"),
        ],
    )
    def test_bad_input_is_one_line_and_code_2(self, arguments: list[str], message: str) -> None:
        """Nothing is computed, and the line says what to do."""
        done = run_command(*arguments)
        assert done.returncode == 2
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1
