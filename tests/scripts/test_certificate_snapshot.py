"""Snapshots: a changed bit is found and named, and renamed words are the same value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scripts import certificate_snapshot
from scripts.certificate_snapshot import find_commit
from scripts.snapshot.models import draw_cases
from scripts.snapshot.recording import Recorder, compare_values, read_values, write_values
from scripts.snapshot.training import read_page
from scripts.snapshot.words import Words

VALUES = {
    "certificates/a/radius": np.array([0.5, np.nan, 0.0]),
    "certificates/a/label": np.array(["no", "yes", "no"]),
    "reports/b/json": np.array([".n = 3", ".radius = 0.5"]),
    "figures/c/average": np.array(0.25),
}


def change(name: str, value: object) -> dict[str, np.ndarray]:
    return {**VALUES, name: np.asarray(value)}


def test_equal_values_are_counted_by_section(tmp_path: Path) -> None:
    """A file keeps every bit, NaN equals NaN, and all values count."""
    write_values(VALUES, tmp_path / "values.npz")
    lines, counts = compare_values(VALUES, read_values(tmp_path / "values.npz"))
    assert not lines
    assert {section: count["compared"] for section, count in counts.items()} == {
        "certificates": 6,
        "reports": 2,
        "figures": 1,
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("certificates/a/radius", [np.nextafter(0.5, 1), np.nan, 0.0]),
        ("certificates/a/radius", [0.5, np.nan, -0.0]),
        ("certificates/a/radius", np.array([0.5, np.nan, 0.0], dtype=np.float32)),
        ("certificates/a/label", ["no", "yes", "yes"]),
        ("reports/b/json", [".n = 3", ".radius = 0.5", ".more = 1"]),
        ("figures/c/average", np.nextafter(0.25, 0)),
        ("figures/c/raised", "ValueError"),
    ],
)
def test_a_changed_bit_is_found_and_named(name: str, value: object) -> None:
    """Of numbers, text, lines and single values; also a value that only one side has."""
    for old, new in ((VALUES, change(name, value)), (change(name, value), VALUES)):
        (line,), counts = compare_values(old, new)
        assert line.startswith(f"{name}: ")
        assert counts[name.partition("/")[0]]["differ"] == 1


def test_what_an_earlier_commit_lacks_is_left_out() -> None:
    """By the beginning of its name."""
    lines, _ = compare_values(VALUES, change("figures/new/total", 1.0), ("figures/new",))
    assert not lines


def test_calls_are_written_in_the_words_of_the_commit() -> None:
    """Names, arguments, methods, attributes and options; where a word has an owner, there alone."""
    words = Words({"perturb": "Threat", "perturb:budget": "l0", "certify:--size": "--radius", "name": "norm"})
    threat = words.perturb(budget=2, norm=1)
    assert words.read(threat, "name", "l0", "nothing") == {"name": 1, "l0": 2}
    assert words.write_line("certify a.json --size 1") == ["certify", "a.json", "--radius", "1"]
    assert words.write_line("report a.json --size 1") == ["report", "a.json", "--size", "1"]


def test_keys_of_documents_are_compared_in_todays_words() -> None:
    """A key that was renamed is the same line on both sides; a key that is left out is on none."""
    now, then = Recorder(Words({})), Recorder(Words({"json:bound": "radius"}))
    for recorder, key in ((now, "bound"), (then, "radius")):
        with recorder.at("reports/x"):
            recorder.add_json("json", {"rows": [{key: 0.5}], "seconds": recorder is now}, frozenset({"seconds"}))
    assert compare_values(then.values, now.values)[0] == []
    assert now.values["reports/x/json"].tolist() == [".rows[0].bound = 0.5"]


def test_what_is_raised_is_a_value_and_ends_its_block_alone() -> None:
    recorder = Recorder(Words({}))
    with recorder.at("certificates/one"):
        recorder.add("before", 1)
        raise ValueError
    with recorder.at("certificates/two"):
        recorder.add("after", 2)
    assert list(recorder.values) == ["certificates/one/before", "certificates/one/raised", "certificates/two/after"]


def test_pages_are_read_by_section() -> None:
    """Text that is seen and data that scripts draw; neither styles nor scripts."""
    page = "<h1>A</h1><style>b</style><section id=s><p>1 <b>2</b></p><script>x</script></section><p>end</p>"
    data = '<script type="application/json">[3]</script>'
    assert read_page(page + data) == {"top": ["A", "end", "[3]"], "s": ["1", "2"]}


def test_models_of_every_kind_are_drawn_alike() -> None:
    """The same seed gives the same cases, with threats for all of them."""
    first, second = (list(draw_cases(Words({}), 0)) for _ in range(2))
    assert len({case.name for case in first}) == len(first) > 20
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.rows, other.rows)
        assert one.threats.keys() >= {"own", "norm 0", "norm inf", "limits", "domain", "steps", "frozen", "units"}


def test_a_commit_that_is_not_in_the_clone_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, and for the base no error: clones may be shallow."""
    base = tmp_path / "base"
    base.write_text("0" * 40 + "\n")
    monkeypatch.setattr(certificate_snapshot, "BASE", base)
    monkeypatch.setattr("sys.argv", ["certificate_snapshot.py", "compare", "--quick"])
    assert find_commit("0" * 40) is None
    assert certificate_snapshot.main() == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
