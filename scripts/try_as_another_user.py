"""Try to get at a job of another user: `python scripts/try_as_another_user.py`.

One user certifies many files, by processes and by a Dask cluster of this machine; another one tries to read, change or
run something of that job: files, processes, and whatever listens. It ends with an error where anything succeeds. An
unprotected cluster comes last, which must be found out: tries that cannot succeed say nothing. Needs root, to become
these users, and libraries that both can read.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

sys.path.insert(0, str(Path(__file__).resolve().parent))
from run_as_nobody import NOBODY, copy_sources, make_environment

OWNER = NOBODY - 1
LISTENING = "0A"
DISCARD: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
PAGES = ("", "health", "metrics", "info/main/workers.html", "json/counts.json", "status")
PREPARE = """
import sys
from pathlib import Path
import numpy as np
from derand import StumpClassifier, save
rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 6))
save(StumpClassifier().fit(X[:2_000], X[:2_000, 0] + X[:2_000, 1] > 0), "model.json")
np.savetxt("rows-0.csv", X, delimiter=",", header=",".join("abcdef"), comments="")
for at in range(1, 3_000):
    Path(f"rows-{at}.csv").hardlink_to("rows-0.csv")
"""
CERTIFY = "from derand.distributed import certify_files; certify_files('model.json', 'rows-*.csv', "
JOBS = {
    "processes": ["-m", "derand", "certify", "model.json", "rows-*.csv", "-o", "by-processes", "--workers", "2"],
    "a cluster": ["-c", f"if __name__ == '__main__': {CERTIFY}'by-cluster', workers=2, memory='2GB')"],
    "an unprotected cluster": [
        "-c",
        "if __name__ == '__main__':\n"
        "    from distributed import LocalCluster\n"
        f"    with LocalCluster(2) as cluster: {CERTIFY}'unprotected', scheduler=cluster.scheduler_address)",
    ],
}


def main() -> None:
    """Start each job as one user, and try to get at it as another."""
    if getattr(os, "geteuid", lambda: None)() != 0:
        raise SystemExit("Only root can become other users: run it as root, such as in a container.")
    with tempfile.TemporaryDirectory(prefix="derand-users-") as name:
        base = Path(name)
        base.chmod(0o755)
        copy_sources(base / "image")
        places = [base / "image" / "src", *(Path(place) for place in sys.path if place.endswith("site-packages"))]
        python = make_environment(base / "venv", [*places, Path(sysconfig.get_path("purelib"))])
        own = base / "own"
        own.mkdir()
        own.chmod(0o755)  # others may enter: what is in it must protect itself
        os.chown(own, OWNER, OWNER)
        subprocess.run([python, "-c", PREPARE], check=True, **become_owner(own))
        found = {what: try_job(python, own, what) for what in JOBS}
    control = found.pop("an unprotected cluster")
    if not any(control.values()):
        raise SystemExit("Nothing was found of an unprotected cluster: these tries say nothing.")
    if any(any(one.values()) for one in found.values()):
        raise SystemExit("Another user got at a job.")


def become_owner(own: Path) -> dict[str, Any]:
    """How processes of the owner are started; compiled code is kept in his folder."""
    environment = {"PATH": os.defpath, "LANG": "C.UTF-8", "TMPDIR": str(own), "HOME": str(own)}
    return {"user": OWNER, "group": OWNER, "extra_groups": [], "umask": 0o077, "cwd": own, "env": environment}


def try_job(python: str, own: Path, what: str) -> dict[str, list[str]]:
    """What succeeded, by what was tried."""
    before, user = len(list(own.rglob("*.csv"))), become_owner(own)
    with subprocess.Popen([python, *JOBS[what]], start_new_session=True, **DISCARD, **user) as job:
        try:
            while len(list(own.rglob("*.csv"))) == before:
                time.sleep(0.05)
                if job.poll() is not None:
                    raise SystemExit(f"The job by {what} ended with code {job.returncode} before anything was done.")
            command = [python, __file__, "--try", str(own), *map(str, list_processes(job.pid))]
            tried = subprocess.run(
                command, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", capture_output=True, text=True, check=True
            )
            if job.poll() is not None:
                raise SystemExit(f"The job by {what} ended before all was tried: give it more files.")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
    found: dict[str, list[str]] = json.loads(tried.stdout.splitlines()[-1])
    print(f"{what}: {json.dumps(found, indent=2)}", flush=True)
    return {name: listed for name, listed in found.items() if name != "tried"}


def list_processes(pid: int) -> Iterator[int]:
    """A process and all that it started."""
    yield pid
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in file.read_text().split():
            yield from list_processes(int(child))


def try_all(folder: Path, processes: list[int]) -> None:
    """As another user: print what succeeded, and how much was tried."""
    files = list(list_files(folder, Path("/tmp"), Path("/var/tmp"), Path("/dev/shm")))
    ports = list_ports()
    found = {
        "files": [what for file in files for what in try_file(file)],
        "processes": [what for pid in processes for what in try_process(pid)],
        "ports": [what for port in ports for what in try_port(port)],
        "tried": [f"{len(files)} files, {len(processes)} processes, {len(ports)} listening ports"],
    }
    print(json.dumps(found))


def list_files(*folders: Path) -> Iterator[Path]:
    """Everything of the owner in some folders that this user can see."""
    for folder in folders:
        for place, _, names in os.walk(folder):
            for path in (Path(place), *(Path(place) / name for name in names)):
                with suppress(OSError):
                    if path.lstat().st_uid == OWNER:
                        yield path


def succeeds(work: Callable[[], object]) -> bool:
    """Whether something can be done; whatever goes wrong, it cannot."""
    try:
        work()
    except Exception:
        return False
    return True


def try_file(path: Path) -> Iterator[str]:
    if path.is_dir():
        if succeeds((path / "planted").touch):
            yield f"made a file in {path}"
        return
    for what, flag in (("read", os.O_RDONLY), ("written", os.O_WRONLY)):
        if succeeds(lambda flag=flag: os.close(os.open(path, flag))):
            yield f"{what}: {path}"
    if succeeds(lambda: path.rename(path.with_name("moved"))):
        yield f"moved: {path}"


def try_process(pid: int) -> Iterator[str]:
    if succeeds(lambda: os.kill(pid, 0)):
        yield f"may signal {pid}"
    for name in ("environ", "mem", "maps"):
        if succeeds(lambda name=name: Path(f"/proc/{pid}/{name}").read_bytes()):
            yield f"read {name} of {pid}"
    for name in ("fd", "cwd"):
        if succeeds(lambda name=name: os.listdir(f"/proc/{pid}/{name}/")):
            yield f"listed {name} of {pid}"


def list_ports() -> list[int]:
    """Ports at which processes of the owner listen."""
    lines = [
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    return [int(line[1].rpartition(":")[2], 16) for line in lines if line[3] == LISTENING and int(line[7]) == OWNER]


def try_port(port: int) -> Iterator[str]:
    for page in PAGES:
        if succeeds(lambda page=page: urlopen(f"http://127.0.0.1:{port}/{page}", timeout=2)):
            yield f"page /{page} of port {port}"
    for protocol in ("tcp", "tls"):
        if succeeds(lambda protocol=protocol: run_code(f"{protocol}://127.0.0.1:{port}")):
            yield f"ran code by {protocol} port {port}"


def run_code(address: str) -> None:
    """Run code in a Dask cluster; a client that does not come through hangs at times, so that it gets a while."""
    code = (
        f"from distributed import Client; import os; print(*Client({address!r}, timeout='3s').run(os.getuid).values())"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=15, check=True)
    if str(OWNER) not in found.stdout.split():
        raise PermissionError(address)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--try"]:
        try_all(Path(sys.argv[2]), [int(pid) for pid in sys.argv[3:]])
    else:
        main()
