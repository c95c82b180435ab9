"""Random lines for every command that the application lists: success, or one line and exit code 1 or 2."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings

from derand import save
from scripts.damage_tables import make_table, run_command, write_csv, write_parquet
from tests.fuzz.strategies import RANDOMS, draw_command, list_commands, share
from tests.storage.models import make_vote

COMMANDS = list_commands()
# others are quick
_SHARES = {"train": 0.05, "report": 0.06, "tune": 0.004, "demo": 0.002, "warm-up": 0.002, "init": 0.05}
CONFIGURATION = """
[data]
train = "table.csv"
target = "y"
holdout = 0.2
[model]
trainer = "stumps"
[certify]
"""
THREAT = 'norm = "inf"\nl0 = 1\n[limits]\nage = "5%"\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables, models and a threat to choose from."""
    folder = tmp_path_factory.mktemp("commands")
    table = make_table(np.random.default_rng(0))
    (folder / "table.csv").write_bytes(write_csv(table))
    (folder / "table.parquet").write_bytes(write_parquet(table))
    (folder / "gaps.csv").write_bytes(write_csv(table).replace(b"cook", b""))
    (folder / "empty.csv").write_bytes(b"")
    (folder / "broken.json").write_bytes(b'{"schema": "derand/2"')
    (folder / "threat.toml").write_text(THREAT)
    (folder / "derand.toml").write_text(CONFIGURATION)
    (folder / "folder").mkdir()
    save(make_vote(), folder / "vote.json")
    model = str(folder / "model.json")
    assert run_command(["train", str(folder / "table.csv"), "--target", "y", "-o", model, "--model", "stumps"])[0] == 0
    return folder


def read_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_command_has_its_line() -> None:
    """The list is the application's own."""
    assert {"train", "tune", "import", "certify", "report", "export", "datasets", "demo"} <= set(COMMANDS)
    assert all(signature.parameters for name, signature in COMMANDS.items() if name in ("train", "certify", "report"))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_random_lines_end_well(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback, no half-written file, and what fails changes nothing."""
    part = _SHARES.get(name, 0.1)
    if settings.default.max_examples * part < 1:
        pytest.skip("takes seconds a line: `make fuzz` runs it")
    monkeypatch.chdir(folder)
    kept = read_files(folder)

    @share(part)
    @given(random=RANDOMS)
    def run_lines(random: Random) -> None:
        line = draw_command(random, name, COMMANDS[name])
        code, errors = run_command(line)
        require_clear_end(line, code, errors)
        now = read_files(folder)
        if code != 0:
            assert now == kept, f"{line} failed and changed {sorted(set(now.items()) ^ set(kept.items()))[:1]}"
        assert not [path for path in now if path.endswith((".part", ".tmp"))]
        assert all(now[path] for path in now if path not in kept)
        restore(folder, kept)

    run_lines()


def require_clear_end(line: list[str], code: int, errors: str) -> None:
    assert code in (0, 1, 2), f"{line} ended with {code}: {errors[-2000:]}"
    assert "Traceback" not in errors, f"{line}: {errors[-2000:]}"
    told = [text for text in errors.splitlines() if not text.startswith("Warning: ")]
    if code == 0:
        assert not told, f"{line}: {errors}"
    else:
        assert len(told) == 1, f"{line}: {errors}"
        assert told[0].startswith("Error: "), f"{line}: {errors}"
        assert len(errors) < 2000


def restore(folder: Path, kept: dict[str, bytes]) -> None:
    """The files as they were: a line may write over its own input."""
    for path in sorted(folder.rglob("*"), reverse=True):
        name = str(path.relative_to(folder))
        if path.is_dir():
            if path != folder / "folder":
                os.rmdir(path)
        elif name not in kept:
            path.unlink()
        elif path.read_bytes() != kept[name]:
            path.write_bytes(kept[name])
