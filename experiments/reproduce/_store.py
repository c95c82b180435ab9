"""The results folder: outcomes of plans with their provenance, so that an interrupted run goes on where it stopped.

Owns the files; must not know what is compared with what. An outcome is used again where its plan, the checksum of its
data and the version of derand are the same; a file that cannot be read counts as missing.
"""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from derand import __version__
from derand._core.files import PathLike, replace_when_done
from experiments._machine import Surroundings, describe_machine
from experiments.datasets import CATALOG, find_file, name_checksum
from experiments.reproduce._outcomes import Outcome
from experiments.reproduce._plans import Plan


class Note(Surroundings):
    """What is kept beside the outcomes of a plan."""

    plan: dict[str, object]
    splits: int
    seconds: float
    finished: str
    derand: str
    data_file: str | None
    data_sha256: str | None
    seed: int


@dataclass(frozen=True, slots=True)
class Store:
    """A results folder."""

    folder: Path

    @classmethod
    def open(cls, folder: PathLike) -> Store:
        """The store in that folder, which is created where it is missing."""
        path = Path(folder)
        try:
            (path / "outcomes").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(f"Cannot use {path} as a results folder: {error.strerror}.") from None
        return cls(path)

    def read(self, plan: Plan) -> list[Outcome] | None:
        """The outcomes of a plan, one per split; None where they are missing, stale or damaged."""
        try:
            note = self.read_note(plan)
            fresh = note["derand"] == __version__ and note["data_sha256"] == name_checksum(plan.dataset)
            if not fresh or note["plan"] != _as_plain(plan):
                return None
            with np.load(self._arrays(plan), allow_pickle=False) as arrays:
                return [
                    Outcome(**{field.name: arrays[f"{split}_{field.name}"] for field in fields(Outcome)})
                    for split in range(note["splits"])
                ]
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
            return None

    def write(self, plan: Plan, outcomes: Sequence[Outcome], seconds: float) -> None:
        """Keep the outcomes of a plan; the note comes last, so that it vouches for the arrays."""
        arrays = {
            f"{split}_{field.name}": getattr(outcome, field.name)
            for split, outcome in enumerate(outcomes)
            for field in fields(Outcome)
        }
        with replace_when_done(self._arrays(plan)) as draft, draft.open("wb") as stream:
            np.savez_compressed(stream, **arrays)
        note: Note = {
            "plan": _as_plain(plan),
            "splits": len(outcomes),
            "seconds": round(seconds, 3),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "derand": __version__,
            "data_file": CATALOG[plan.dataset].file,
            "data_sha256": name_checksum(plan.dataset),
            "seed": plan.seed,
            **describe_machine(),
        }
        self.write_text(self._note(plan), json.dumps(note, indent=1) + "\n")

    def read_note(self, plan: Plan) -> Note:
        """Provenance of a plan's outcomes."""
        note: Note = json.loads(self._note(plan).read_text(encoding="utf-8"))
        return note

    def write_text(self, path: Path, text: str) -> None:
        """Write a file of the folder, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_when_done(path) as draft:
            draft.write_text(text, encoding="utf-8")

    def _note(self, plan: Plan) -> Path:
        return self.folder / "outcomes" / f"{plan.key}.json"

    def _arrays(self, plan: Plan) -> Path:
        return self.folder / "outcomes" / f"{plan.key}.npz"


def require_data(plans: Sequence[Plan]) -> None:
    """Refuse to start where a data file is missing; the error says where to get it."""
    for name in {plan.dataset: None for plan in plans}:
        find_file(name)


def _as_plain(plan: Plan) -> dict[str, object]:
    plain: dict[str, object] = json.loads(json.dumps(asdict(plan)))
    return plain
