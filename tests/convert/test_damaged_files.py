"""Native files that are damaged: read, or refused by one line, while the process goes on."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from derand.convert import compare_scores, probe_rows, read_file

FIRST = {".txt": 0, ".json": 1, ".ubj": 2, ".cbm": 3}
"""A way of damage for each format; the long test has all ways for all of them."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of each library in its own format."""
    catboost, lightgbm, xgboost = map(pytest.importorskip, ("catboost", "lightgbm", "xgboost"))
    folder = tmp_path_factory.mktemp("native")
    X = np.random.default_rng(0).normal(size=(300, 4))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    lightgbm.LGBMClassifier(n_estimators=20, max_depth=1, verbose=-1).fit(X, y).booster_.save_model(folder / "m.txt")
    boosted = xgboost.XGBClassifier(n_estimators=20, max_depth=1).fit(X, y)
    for suffix in (".json", ".ubj"):
        boosted.save_model(folder / f"m{suffix}")
    own = catboost.CatBoostClassifier(iterations=20, depth=1, verbose=0, train_dir=str(folder / "training"))
    own.fit(X, y).save_model(str(folder / "m.cbm"))
    return folder


def damage(content: bytes, seed: int) -> bytes:
    """A file cut short, with some bits flipped, or with some bytes lost or replaced."""
    draw = random.Random(seed)
    changed = bytearray(content)
    if seed % 3 == 0:
        return content[: draw.randrange(len(content))]
    if seed % 3 == 1:
        for _ in range(draw.choice([1, 1, 1, 4, 16])):
            changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    else:
        start, size = draw.randrange(len(changed)), draw.randrange(1, 64)
        changed[start : start + size] = draw.randbytes(size) if draw.random() < 0.5 else b""
    return bytes(changed)


def read_and_compare(path: Path) -> str:
    """What became of a file: "read", "refused" by the library or by us, or "lost" with the process that read it."""
    try:
        reading = read_file(path)
        model = reading.build()
        if reading.raw_scores is not None:
            compare_scores(reading, model, probe_rows(reading, model, 200))
    except (TypeError, ValueError, OSError) as error:
        return "lost" if "is damaged: " in str(error) else "refused"
    return "read"


def try_damaged(files: Path, folder: Path, suffix: str, seeds: range) -> list[str]:
    content = (files / f"m{suffix}").read_bytes()
    found = []
    for seed in seeds:
        path = folder / f"{seed}{suffix}"
        path.write_bytes(damage(content, seed))
        found.append(read_and_compare(path))
    return found


def test_a_file_that_makes_its_library_abort_is_one_line(files: Path, tmp_path: Path) -> None:
    """LightGBM aborts where the text ends within a tree."""
    path = tmp_path / "cut.txt"
    text = (files / "m.txt").read_text()
    path.write_text(text[: text.index("threshold=", len(text) // 2)])
    with pytest.raises(ValueError, match=r"cut\.txt is damaged: LightGBM could not read it \(its process was ended"):
        read_file(path)


@pytest.mark.parametrize("suffix", FIRST)
def test_damaged_files_end_no_process(files: Path, tmp_path: Path, suffix: str) -> None:
    assert read_and_compare(files / f"m{suffix}") == "read"
    assert try_damaged(files, tmp_path, suffix, range(FIRST[suffix], FIRST[suffix] + 1)) != []


@pytest.mark.long
@pytest.mark.parametrize("suffix", FIRST)
def test_many_damaged_files_end_no_process(files: Path, tmp_path: Path, suffix: str) -> None:
    found = try_damaged(files, tmp_path, suffix, range(150))
    print(suffix, {what: found.count(what) for what in sorted(set(found))})
    assert "refused" in found
