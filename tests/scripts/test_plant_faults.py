"""Faults planted on purpose: the table is as it should be, and the tests find each of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from scripts.plant_faults import FAULTS, FOUND, GONE, MISSED, PACKAGE, ROOT, Fault, copy_tree, find_place, plant


def test_every_room_has_two_faults_of_its_own_name() -> None:
    assert len(FAULTS) >= 40
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert min(Counter(fault.room for fault in FAULTS).values()) >= 2
    assert all(fault.old != fault.new and fault.tests for fault in FAULTS)


def test_every_fault_has_its_source_and_its_tests() -> None:
    """A piece or a test that has moved is pointed to again by whoever moves it."""
    assert [fault.name for fault in FAULTS if find_place(fault, ROOT) is None] == []
    named = {test.partition("::") for fault in FAULTS for test in fault.tests}
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path, _, _ in named if (ROOT / path).is_file()}
    gone = {f"{path}::{name}" for path, _, name in named if f"def {name}(" not in texts.get(path, "") and name}
    assert gone | {path for path, _, _ in named if path not in texts} == set()


def test_a_piece_that_has_moved_is_found_and_one_that_is_gone_is_said(tmp_path: Path) -> None:
    """The source is as before afterwards, to its time; a fault that no test sees is not found."""
    (tmp_path / PACKAGE).mkdir(parents=True)
    place = tmp_path / PACKAGE / "other.py"
    place.write_text("A = 1 + 2\n")
    (tmp_path / "test_sum.py").write_text(
        f"def test_sum():\n    a = {{}}\n    exec(open({str(place)!r}).read(), a)\n    assert a['A'] < 4\n"
    )
    times = place.stat().st_mtime_ns
    outcomes = {}
    for name, old, new in (("room: a", "1 + 2", "1 + 3"), ("room: b", "1 + 2", "1 + 1"), ("room: c", "5", "6")):
        outcomes[name] = plant(Fault(name, "first.py", old, new, ("test_sum.py",)), tmp_path)[0]
    assert outcomes == {"room: a": FOUND, "room: b": MISSED, "room: c": GONE}
    assert (place.read_text(), place.stat().st_mtime_ns) == ("A = 1 + 2\n", times)
    place.with_name("third.py").write_text("B = 1 + 2\n")
    assert find_place(Fault("room: a", "first.py", "1 + 2", "", ()), tmp_path) is None  # in two files: which one?


@pytest.mark.long
def test_every_planted_fault_is_found(tmp_path: Path) -> None:
    copy_tree(tmp_path)
    outcomes = {fault.name: plant(fault, tmp_path) for fault in FAULTS}
    assert {name: one for name, one in outcomes.items() if one[0] != FOUND} == {}
