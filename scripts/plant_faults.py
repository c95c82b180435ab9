"""Plants faults on purpose, one at a time in a copy of the tree, and asks whether the tests that should find them do.

    python scripts/plant_faults.py                   # all of them; exit code 1 where one is not found
    python scripts/plant_faults.py metrics storage   # those of some rooms, or of some names
    python scripts/plant_faults.py --list            # where each of them would be planted now, without any test

A fault is a piece of source and what stands there instead: a wrong tail, an edge off by one, swapped labels, a limit or
a refusal that is left out, a number that is rounded to nearest. A piece that has moved to another file is looked for in
the whole package. Where it is gone, or where its tests are, the fault says so: point it to what replaced them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("src/derand")
_TESTS_FAILED = 1
"""The exit code of pytest; where it cannot collect, it is another one."""
FOUND, MISSED, GONE, NO_TESTS = "found", "NOT FOUND", "the source is gone", "the tests are gone"


class Fault(NamedTuple):
    """A room and a name, a file of the package, what stands there, what is planted, and the tests that find it."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def room(self) -> str:
        return self.name.partition(":")[0]


FAULTS = [
    Fault(name, file, old, new, tuple(f"tests/{test}" for test in tests.split()))
    for name, file, old, new, tests in (
        (
            "kernels: a tail without the threshold itself",
            "kernels/tails/numpy_backend.py",
            "support <= low[:, k, None]",
            "support < low[:, k, None]",
            "kernels/tails/test_kernels.py::test_tails_agree_with_enumeration",
        ),
        (
            "kernels: a failing mass rounded downward",
            "kernels/tails/numpy_backend.py",
            "result += rounding_bound(scores.size)",
            "result -= rounding_bound(scores.size)",
            "kernels/tails/test_kernels.py::test_failures_agree_with_enumeration",
        ),
        (
            "kernels: a norm below all normal numbers rounded to nearest",
            "kernels/norms.py",
            "norms + SMALLEST, norms)",
            "norms, norms)",
            "fuzz/test_scales.py::test_norms_scale_to_the_last_bit",
        ),
        (
            "noise: ties without a margin",
            "noise.py",
            "return 3 * band * self.magnitude",
            "return 0 * band * self.magnitude",
            "test_noise.py::test_the_margin_at_ties_keeps_the_failure_mass_from_one_half",
        ),
        (
            "noise: a radius rounded to nearest",
            "noise.py",
            "return _round_down(self.sigma * upper_quantile(mass, log_mass), self.sigma)",
            "return np.asarray(self.sigma * upper_quantile(mass, log_mass))",
            "test_noise.py::test_radius_is_a_tight_lower_bound",
        ),
        (
            "model: an edge that belongs to the cell below it",
            "model/_terms.py",
            'np.searchsorted(self.edges, values, side="right")',
            'np.searchsorted(self.edges, values, side="left")',
            "model/test_terms.py model/test_every_term.py",
        ),
        (
            "model: a threshold rounded up",
            "model/_additive.py",
            "Threshold(math.floor(-float(intercept) * levels)",
            "Threshold(math.ceil(-float(intercept) * levels)",
            "model/test_quantize.py",
        ),
        (
            "model: offsets of two classes swapped",
            "model/_decision.py",
            "return self.offsets[low] - self.offsets[high]",
            "return self.offsets[high] - self.offsets[low]",
            "certificates/test_duels.py::test_labels_and_masses_are_those_of_enumerated_duels",
        ),
        (
            "certificates: too small a deduction for the median",
            "certificates/bounds/deduction.py",
            "CONSTANT = 0.73",
            "CONSTANT = 0.6",
            "certificates/test_worst_case.py::test_no_change_within_the_radius_flips_a_skewed_vote",
        ),
        (
            "certificates: a tolerance that is doubled",
            "certificates/rules/vote.py",
            "self.compute(rows), math.floor(tolerance), self._columns",
            "self.compute(rows), math.floor(2 * tolerance), self._columns",
            "certificates/test_intervals.py::test_tolerance_and_interval_agree",
        ),
        (
            "certificates: missing numbers that are not marked",
            "certificates/bounds/missing_values.py",
            "is_missing[:, cell.feature] = at",
            "is_missing[:, cell.feature] = False",
            "certificates/test_gaps.py",
        ),
        (
            "certificates: a flip at the radius counts as inside",
            "certificates/results/attacks.py",
            "(radius > 0) & (self.distance <= radius)",
            "(radius > 0) & (self.distance < radius)",
            "certificates/test_attack_search.py::test_a_planted_fault_is_found",
        ),
        (
            "certificates: the runner-up is any rival",
            "certificates/bounds/pairwise.py",
            "runner_up = np.where(nearest, likeness, -np.inf).argmax(axis=1)",
            "runner_up = np.where(is_rival, likeness, -np.inf).argmin(axis=1)",
            "certificates/test_duels.py::test_radius_is_the_smallest_of_all_duels certificates/test_drafts.py",
        ),
        (
            "perturbation: percentages that are left out",
            "perturbation.py",
            "own - (size + self.down[at])",
            "own - self.down[at]",
            "test_perturbation.py certificates/test_limits.py",
        ),
        (
            "perturbation: a domain without its upper end",
            "perturbation.py",
            "(own < least) | (own > most)",
            "own < least",
            "test_perturbation.py test_threat.py certificates/test_limits.py",
        ),
        (
            "perturbation: frozen columns that move",
            "perturbation.py",
            "free=self.free & ~held,",
            "free=self.free,",
            "test_perturbation.py certificates/test_explain.py",
        ),
        (
            "threat: limits below zero",
            "threat.py",
            "if not (down >= 0 and up >= 0):",
            "if not down >= 0:",
            "test_threat.py::test_what_makes_no_sense_is_refused",
        ),
        (
            "threat: a domain whose ends are swapped",
            "threat.py",
            "if not lowest <= highest:",
            "if not (lowest <= highest or highest <= lowest):",
            "test_threat.py::test_what_makes_no_sense_is_refused",
        ),
        (
            "auditing: failing masses that are not looked at",
            "auditing/_row_claims.py",
            '"failure": self._holds_failure,',
            '"failure": lambda: True,',
            "auditing/test_audit.py::test_other_forgeries_are_found",
        ),
        (
            "auditing: witnesses outside the threat",
            "auditing/_row_claims.py",
            "self._threat.allows(self._model, self._row, changed) and ",
            "",
            "auditing/test_audit.py::test_a_witness_lies_within_the_threat",
        ),
        (
            "auditing: leaves without what they may be off by",
            "auditing/trees/proofs.py",
            "(self._add(leaf.errors) if with_error else 0)",
            "0",
            "auditing/test_trees.py::test_leaves_count_with_what_they_may_be_off_by",
        ),
        (
            "auditing: one half of a region alone",
            "auditing/trees/splitting.py",
            "for cells in (half, node.cells[feature] & ~half)]",
            "for cells in (half,)]",
            "auditing/test_trees.py::test_the_largest_true_radius_is_proven_and_the_next_double_is_not",
        ),
        (
            "auditing: regions at the limit of a budget lie outside",
            "auditing/trees/regions.py",
            "if spare < 0:",
            "if spare <= 0:",
            "auditing/test_trees.py::test_the_largest_true_radius_is_proven_and_the_next_double_is_not",
        ),
        (
            "auditing: flips within what the model may be off by",
            "auditing/trees/proofs.py",
            "return self.score - self._own_error > self.level",
            "return self.score > self.level",
            "auditing/test_trees.py::test_flips_are_proven_by_their_witness",
        ),
        (
            "auditing: twice the tolerance",
            "auditing/_row_claims.py",
            "stays_within(self._value, self._tolerance, radius)",
            "stays_within(self._value, 2 * self._tolerance, radius)",
            "auditing/test_regression.py",
        ),
        (
            "metrics: a radius does not hold at itself",
            "metrics/_certified.py",
            "np.count_nonzero(held >= one)",
            "np.count_nonzero(held > one)",
            "metrics/test_certified.py",
        ),
        (
            "metrics: the upper of two medians",
            "metrics/_radii.py",
            'np.quantile(finite, 0.5, method="lower")',
            'np.quantile(finite, 0.5, method="higher")',
            "metrics/test_radii.py",
        ),
        (
            "metrics: rows without a certificate count at radius 0",
            "metrics/_certified.py",
            "sizes[rows & (sizes > 0)]",
            "sizes[rows]",
            "metrics/test_certified.py",
        ),
        (
            "tables: unseen and missing categories swapped",
            "tables/_encoding.py",
            "np.where(np.isnan(codes), len(values) + 1, len(values))",
            "np.where(np.isnan(codes), len(values), len(values) + 1)",
            "tables/test_encoding.py",
        ),
        (
            "tables: columns that are not there",
            "tables/_files.py",
            "missing = [name for name in wanted if name not in known]",
            "missing = [name for name in wanted if name not in known and name is None]",
            "tables/test_files.py",
        ),
        (
            "tables: rows are numbered from 0",
            "tables/_files.py",
            'rows = f" in rows {first_row} to {first_row + n_rows - 1}"',
            'rows = f" in rows {first_row - 1} to {first_row + n_rows - 2}"',
            "app/jobs/test_certifying.py::test_a_file_that_does_not_fit_the_model_is_refused",
        ),
        (
            "train: class and rest swapped",
            "train/splits.py",
            "np.stack([rest, rows[:, code]], axis=1)",
            "np.stack([rows[:, code], rest], axis=1)",
            "train/test_splits.py::test_a_class_against_the_rest_is_a_split_of_two_classes",
        ),
        (
            "train: leaves of the first split",
            "train/paper/boosting.py",
            "return edges[-1]",
            "return edges[0]",
            "train/paper/test_boosting.py estimators/test_tree_boost.py",
        ),
        (
            "train: the smallest class decides",
            "train/paper/stumps.py",
            "np.argmax(weights * (1 + _TIE) >= weights.max())",
            "np.argmin(weights)",
            "train/paper/test_stumps.py",
        ),
        (
            "convert: one cell too few left of a split",
            "convert/_trees.py",
            "int(np.searchsorted(axis.edges, edge)) + 1]",
            "int(np.searchsorted(axis.edges, edge))]",
            "convert/test_trees.py",
        ),
        (
            "convert: missing numbers go the other way",
            "convert/_trees.py",
            "left[axis.edges.size + 1 :] = tree.missing_left[node]",
            "left[axis.edges.size + 1 :] = not tree.missing_left[node]",
            "convert/test_trees.py",
        ),
        (
            "convert: the edge itself",
            "convert/_edges.py",
            "return np.nextafter(np.asarray(thresholds, dtype=np.float64), np.inf)",
            "return np.asarray(thresholds, dtype=np.float64)",
            "convert/test_edges.py convert/test_sklearn_trees.py",
        ),
        (
            "estimators: costs swapped",
            "estimators/_movable.py",
            '{"false_positive": false_positive, "false_negative": false_negative}',
            '{"false_positive": false_negative, "false_negative": false_positive}',
            "estimators/test_threshold.py",
        ),
        (
            "estimators: a threshold of 1",
            "estimators/_cutting.py",
            "not 0 < decision_threshold < 1",
            "not 0 < decision_threshold <= 1",
            "estimators/test_threshold.py::test_thresholds_and_costs_that_make_no_sense_are_refused",
        ),
        (
            "storage: NaN in a file",
            "storage/_document.py",
            "parse_constant=_refuse_constant, ",
            "",
            "storage/test_document.py",
        ),
        (
            "storage: a checksum that is not looked at",
            "storage/_document.py",
            '_check_checksum(fields["sha256"].text(), document)',
            'fields["sha256"].text()',
            "storage/test_document.py",
        ),
        (
            "storage: files nested as deeply as they like",
            "storage/_document.py",
            'if b"[]" in brackets or b"{}" in brackets or len(brackets) > MAX_DEPTH:',
            "if len(brackets) < 0:",
            "storage/test_document.py",
        ),
        (
            "report: percentages rounded to nearest",
            "_core/text.py",
            "exact.quantize(Decimal('0.1'), rounding=_ROUNDINGS[way])",
            "exact.quantize(Decimal('0.1'), rounding=_ROUNDINGS['nearest'])",
            "core/test_text.py report/test_markup.py",
        ),
        (
            "report: numbers that do not fit their bytes",
            "report/_packing.py",
            "column.max() < 2**32",
            "column.max() < 2**40",
            "report/test_packing.py",
        ),
        (
            "report: a move rounded upward",
            "explain/_words.py",
            "return math.nextafter(product, 0.0)",
            "return product",
            "report/sections/test_shapes.py::test_products_are_rounded_down",
        ),
        (
            "explain: falls and rises swapped",
            "explain/_words.py",
            "{'fell' if after < before else 'rose'}",
            "{'rose' if after < before else 'fell'}",
            "explain/test_rows.py::test_sentences",
        ),
        (
            "explain: pushes measured from the wrong end",
            "explain/_pushes.py",
            "room = (model.threshold or 0) - lowest",
            "room = (model.threshold or 0) + lowest",
            "explain/test_rows.py::test_pushes_add_up_to_the_distance_from_the_threshold",
        ),
        (
            "app: wrong rows are proven",
            "app/jobs/_tally.py",
            "(correct & (certificates.radius > 0)).sum()",
            "(certificates.radius > 0).sum()",
            "app/jobs/test_request.py::test_a_file_is_certified_as_its_rows_are",
        ),
        (
            "app: witnesses of the row before",
            "app/jobs/_certifying.py",
            '"row": at + first_row,',
            '"row": at + first_row - 1,',
            "app/jobs/test_certifying.py::test_witnesses_that_are_read_back_get_the_other_label",
        ),
        (
            "app: rows without a certificate are counted",
            "app/jobs/_tally.py",
            "self.n_certified += int((certificates.radius > 0).sum())",
            "self.n_certified += int((certificates.radius >= 0).sum())",
            "app/jobs/test_certifying.py::test_certifying_a_file_in_batches_equals_certifying_it_at_once",
        ),
        (
            "app: another exit code after SIGTERM",
            "app/commands/_app.py",
            "code = 128 + signal.SIGTERM",
            "code = 1",
            "app/commands/test_app.py::test_sigterm_removes_what_was_begun",
        ),
        (
            "app: wrong usage succeeds",
            "app/commands/_app.py",
            "return complain(explain()) if explain() else 0",
            "return 0 * complain(explain()) if explain() else 0",
            "app/commands/test_app.py::test_nothing_in_names_and_labels_controls_the_terminal",
        ),
        (
            "distributed: results of other bytes count as done",
            "distributed/_files.py",
            "if all(mark.matches(path) for mark, path in pairs)",
            "if any(mark.matches(path) for mark, path in pairs)",
            "distributed/test_certifying.py::test_what_is_done_is_not_done_again",
        ),
        (
            "distributed: files of one name overwrite each other",
            "distributed/_files.py",
            "if name in names:",
            "if name not in names and name in names:",
            "distributed/test_certifying.py::test_folders_and_names",
        ),
    )
]  # fmt: skip


def copy_tree(folder: Path) -> None:
    """What git knows, with the times of the files: numba compiles again what is newer."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.decode().split("\0")):
        source, target = ROOT / name, folder / name
        if source.is_file() and not (target.is_file() and target.read_bytes() == source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def find_place(fault: Fault, folder: Path) -> Path | None:
    """The file of a fault, or the only other one of the package that holds its piece."""
    named = folder / PACKAGE / fault.file
    if named.is_file() and fault.old in named.read_text(encoding="utf-8"):
        return named
    others = [path for path in (folder / PACKAGE).rglob("*.py") if fault.old in path.read_text(encoding="utf-8")]
    return others[0] if len(others) == 1 else None


def plant(fault: Fault, folder: Path) -> tuple[str, str]:
    """What became of a fault in a copy of the tree, and the test that found it, or the last line of all of them."""
    place = find_place(fault, folder)
    if place is None:
        return GONE, fault.file
    before, times = place.read_text(encoding="utf-8"), place.stat()
    place.write_text(before.replace(fault.old, fault.new), encoding="utf-8")
    paths = os.pathsep.join([str(folder / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not long", "-p", "no:cacheprovider", *fault.tests]
    try:
        done = subprocess.run(
            command, cwd=folder, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False
        )
    finally:
        place.write_text(before, encoding="utf-8")
        os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))
    lines = done.stdout.splitlines() or [""]
    failed = [line.partition(" - ")[0].removeprefix("FAILED ") for line in lines if line.startswith("FAILED ")]
    if done.returncode == _TESTS_FAILED and failed:
        return FOUND, failed[0]
    return (MISSED if done.returncode == 0 else NO_TESTS), lines[-1]


def choose(words: Iterable[str]) -> list[Fault]:
    """Those of the rooms, or with a part of the name, that are asked for; all where nothing is."""
    wanted = list(words)
    return [one for one in FAULTS if not wanted or any(word == one.room or word in one.name for word in wanted)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="rooms, or parts of names")
    parser.add_argument("--list", action="store_true", help="only say where each would be planted")
    parser.add_argument("--folder", type=Path, help="keep the copy of the tree here, with what numba compiles for it")
    asked = parser.parse_args()
    faults = choose(asked.words)
    if asked.list:
        places = [(fault, find_place(fault, ROOT)) for fault in faults]
        for fault, place in places:
            print(f"{fault.name}: {GONE if place is None else place.relative_to(ROOT)}")
        return int(any(place is None for _, place in places))
    outcomes = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        copy_tree(folder)
        for fault in faults:
            outcome, by = plant(fault, folder)
            outcomes.append(outcome)
            print(f"{outcome}: {fault.name} ({by})", flush=True)
    print(f"{outcomes.count(FOUND)} of {len(outcomes)} faults found")
    return int(outcomes.count(FOUND) < len(outcomes))


if __name__ == "__main__":
    sys.exit(main())
