"""Values of every kind of model by the code as it is and as it was at a commit, compared to the last bit in one run.

    python scripts/certificate_snapshot.py compare COMMIT           # exit code 1 where a value differs
    python scripts/certificate_snapshot.py compare COMMIT --quick   # a part, as CI does
    python scripts/certificate_snapshot.py compare                  # with the commit in scripts/snapshot_base

Certificates, intervals, verdicts, witnesses, attacks and audits of drawn models; fitted models of every trainer;
reports; command lines. Both sides run at the same time on this machine (bits may differ between machines), each with
its own compiled kernels, which are kept in the user's cache. `scripts/snapshot/words.py` says what was renamed since.
`--section certificates,reports` runs some sections alone, `--keep FOLDER` leaves the values of both sides there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
from io import BytesIO
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.snapshot import recording, words
from tests.compiled import hash_compiled

ROOT = Path(__file__).resolve().parents[1]
BASE = ROOT / "scripts" / "snapshot_base"
SECTIONS = ("certificates", "rows", "trainers", "reports", "commands")
"""What can be run alone; intervals, attacks and the like are recorded beside certificates."""
FIXED = {"SOURCE_DATE_EPOCH": "1700000000", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "200"}


def main() -> int:
    """Read the command line; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    compare = commands.add_parser("compare")
    compare.add_argument("commit", nargs="?", default=None)
    compare.add_argument("--keep", type=Path)
    collect = commands.add_parser("collect")  # what each side runs
    collect.add_argument("path", type=Path)
    collect.add_argument("--then", default="{}")
    for one in (compare, collect):
        one.add_argument("--quick", action="store_true")
        one.add_argument("--section", default=",".join(SECTIONS))
    asked = parser.parse_args()
    if asked.command == "collect":
        run_sections(asked.path, json.loads(asked.then), asked.section.split(","), asked.quick)
        return 0
    commit = find_commit(asked.commit or BASE.read_text(encoding="utf-8").strip())
    if commit is None:
        print(
            "The commit to compare certificates with is not in this clone: fetch it to compare. Nothing was compared."
        )
        return 2 if asked.commit else 0
    return compare_with(commit, [*(["--quick"] if asked.quick else []), "--section", asked.section], asked.keep)


def run_sections(path: Path, then: dict[str, str], chosen: list[str], quick: bool) -> None:
    """Collect the values of the package that is imported here, and write them."""
    from scripts.snapshot import claims, commands, training

    warnings.simplefilter("ignore")
    work = {
        "certificates": claims.record_claims,
        "rows": claims.record_rows,
        "trainers": training.record_trainers,
        "reports": training.record_reports,
        "commands": commands.record_commands,
    }
    recorder, taken = recording.Recorder(words.Words(then)), []
    for name in chosen:
        start = time.process_time()
        work[name](recorder, quick)
        taken.append(f"{name} {time.process_time() - start:.0f} s")
    recording.write_values(recorder.values, path)
    import derand

    print(f"{Path(derand.__file__).parent}: {', '.join(taken)} of CPU time", flush=True)


def compare_with(commit: str, options: list[str], keep: Path | None) -> int:
    """Run both sides at once, and print what was compared and what differs."""
    earlier = list_earlier(commit)
    then = {new: old for key in words.RENAMED if key in earlier for new, old in words.RENAMED[key].items()}
    lacking = tuple(start for key in words.LACKING if key in earlier for start in words.LACKING[key])
    with tempfile.TemporaryDirectory(prefix="derand-snapshot-") as name:
        folder, cache = Path(name), find_cache() or Path(name)
        sides = {"then": (unpack(commit, cache), then), "now": (ROOT, {})}
        running = {}
        for side, (tree, renamed) in sides.items():
            kernels = cache / f"kernels-{hash_compiled(tree / 'src' / 'derand')}"
            environment = {**os.environ, **FIXED, "NUMBA_CACHE_DIR": str(kernels)}
            environment["PYTHONPATH"] = os.pathsep.join([str(tree / "src"), str(ROOT)])
            command = [sys.executable, __file__, "collect", str(folder / f"{side}.npz"), "--then", json.dumps(renamed)]
            running[side] = subprocess.Popen([*command, *options], env=environment, cwd=folder)
        codes = {side: process.wait() for side, process in running.items()}
        if any(codes.values()):
            print(f"A side ended with an error: {codes}.")
            return 2
        if keep is not None:
            shutil.copytree(folder, keep, dirs_exist_ok=True)
        old, new = (recording.read_values(folder / f"{side}.npz") for side in sides)
    lines, counts = recording.compare_values(old, new, lacking)
    for line in lines:
        print(line)
    for section, count in counts.items():
        print(
            f"{section:<14}{count['compared']:>9,} values, {count['raised']:>4,} errors, {count['differ']:>6,} differ"
        )
    total = sum(counts.values(), start=type(next(iter(counts.values())))())
    print(f"{total['compared']:,} values compared with {commit[:10]}, {total['differ']:,} differ")
    return int(total["differ"] > 0)


def find_commit(name: str) -> str | None:
    """The full name of a commit; None where this clone does not have it."""
    done = _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    return done.stdout.decode().strip() or None


def list_earlier(commit: str) -> set[str]:
    """The commits of the tables of words that this commit is, or came before."""
    known = {*words.RENAMED, *words.LACKING}
    return {one for one in known if _git("merge-base", "--is-ancestor", commit, one).returncode == 0}


def find_cache() -> Path | None:
    """A folder of the user's own: what lies in it is run, so that nobody else may write there."""
    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    folder = Path(home) / "derand-snapshot"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) and folder.stat().st_uid == os.getuid() else None


def unpack(commit: str, cache: Path) -> Path:
    """The sources of a commit, always in the same place and with the same times, by which numba knows them again."""
    tree = cache / commit
    if not tree.exists():
        with tempfile.TemporaryDirectory(dir=cache) as draft:
            archive = _git("archive", "--format=tar", commit, "src")
            with tarfile.open(fileobj=BytesIO(archive.stdout)) as sources:
                sources.extractall(draft, filter="data")
            Path(draft).chmod(0o700)
            shutil.copytree(draft, tree)
    return tree


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
