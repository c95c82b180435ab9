"""Run commands and tests as a user who owns nothing and has no home: `python scripts/run_as_nobody.py [tests ...]`.

As in a container with a read-only image: the package is a copy that this user cannot write to, and HOME is not set. The
commands (`try_commands.py`) find no folder at all for compiled code; the tests, and the processes that they start, keep
theirs in a temporary folder as always. Needs root, to become that user, and libraries that the user can read.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOBODY = 65534
TESTS = (
    "tests/certificates/test_results.py",
    "tests/app/jobs",
    "tests/kernels/test_compiling.py",
    "tests/storage",
    "tests/core/test_files.py",
)
"""What reads and writes files, and what compiles."""


def main(tests: Sequence[str]) -> None:
    """Run commands, then tests; ends with the code of the first that fails."""
    if getattr(os, "geteuid", lambda: None)() != 0:
        raise SystemExit("Only root can become another user: run it as root, such as in a container.")
    with tempfile.TemporaryDirectory(prefix="derand-nobody-") as name:
        image, own = Path(name) / "image", Path(name) / "own"
        Path(name).chmod(0o755)
        copy_sources(image)
        python = make_environment(Path(name) / "venv", [image / "src", image, Path(sysconfig.get_path("purelib"))])
        own.mkdir()
        os.chown(own, NOBODY, NOBODY)
        run([python, str(image / "scripts" / "try_commands.py")], own)
        options = ["-q", "-p", "no:cacheprovider", "-m", "not long", "--rootdir", str(image)]
        run([python, "-m", "pytest", *options, *(str(image / test) for test in tests or TESTS)], own)


def find_python() -> str:
    """An interpreter of this version that the user may run: this one may lie in the home of root."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, *(f"{folder}/{version}" for folder in ("/usr/local/bin", "/usr/bin"))):
        command = [candidate, "-c", "import sys"]
        try:
            subprocess.run(command, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return candidate
    raise SystemExit(f"The user {NOBODY} may not run {sys.executable}, and there is no {version} that it may run.")


def make_environment(folder: Path, places: Sequence[Path]) -> str:
    """A virtual environment that imports from these places; returns its interpreter."""
    subprocess.run([find_python(), "-m", "venv", "--without-pip", str(folder)], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    lines = "".join(f"{place}\n" for place in places)
    (folder / "lib" / version / "site-packages" / "places.pth").write_text(lines, encoding="utf-8")
    return str(folder / "bin" / "python")


def copy_sources(image: Path) -> None:
    """A copy of the clone, without what was made in it, that only root could write to."""
    anywhere = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info")
    at_the_top = shutil.ignore_patterns("build", "demo", "dist", "*results")

    def list_made(folder: str, names: list[str]) -> set[str]:
        return anywhere(folder, names) | (at_the_top(folder, names) if Path(folder) == ROOT else set())

    shutil.copytree(ROOT, image, ignore=list_made)


def run(command: list[str], folder: Path) -> None:
    """Run a command as the user, in a folder of its own that is also for temporary files; leave where it fails."""
    environment = {"PATH": os.defpath, "LANG": "C.UTF-8", "TMPDIR": str(folder)}
    code = subprocess.run(
        command, cwd=folder, env=environment, user=NOBODY, group=NOBODY, extra_groups=[], check=False
    ).returncode
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
