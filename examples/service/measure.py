"""Start the service on loopback, and measure it: the first call, latencies of calls by threads, memory.

derand warm-up
python measure.py model.json rows.csv --calls 1000 --threads 4
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

HERE = Path(__file__).parent
PATHS = ("/predict", "/certify", "/explain")


def start(model: Path, threat: Path | None = None) -> tuple[subprocess.Popen[str], str]:
    """The service in a process of its own, on a free port; it answers when this returns."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    given = {} if threat is None else {"DERAND_THREAT": str(threat)}
    command = [sys.executable, "-m", "uvicorn", "service:app", "--port", str(port), "--log-level", "warning"]
    process = subprocess.Popen(command, cwd=HERE, text=True, env={**os.environ, "DERAND_MODEL": str(model), **given})
    url = f"http://127.0.0.1:{port}"
    while True:
        if process.poll() is not None:
            raise RuntimeError(f"The service ended with exit code {process.returncode}.")
        try:
            httpx.get(f"{url}/openapi.json")
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return process, url


def stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait()


def read_memory(process: subprocess.Popen[str]) -> float:
    """MiB of a process."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def read_cpu(process: subprocess.Popen[str]) -> float:
    """Milliseconds of CPU that a process has taken."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--threat", type=Path)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=4)
    asked = parser.parse_args()
    bodies = read_bodies(asked.rows)
    process, url = start(asked.model.absolute(), None if asked.threat is None else asked.threat.absolute())
    try:
        with httpx.Client(base_url=url, timeout=120) as client:
            for path in PATHS:
                measure(client, path, bodies, process, asked)
    finally:
        stop(process)


def measure(client: httpx.Client, path: str, bodies: list[Any], process: Any, asked: argparse.Namespace) -> None:
    def call(at: int) -> float:
        begin = time.perf_counter()
        answer = client.post(path, content=bodies[at % len(bodies)], headers={"Content-Type": "application/json"})
        answer.raise_for_status()
        return 1000 * (time.perf_counter() - begin)

    spent = read_cpu(process)
    first, spent, before = call(0), read_cpu(process) - spent, read_memory(process)
    with ThreadPoolExecutor(asked.threads) as pool:
        taken = sorted(pool.map(call, range(asked.calls)))
    half, most = taken[len(taken) // 2], taken[int(0.99 * (len(taken) - 1))]
    print(f"{path}: first call {first:.0f} ms, {spent:.0f} ms of CPU")
    print(f"  {asked.calls} calls by {asked.threads} threads: median {half:.1f} ms, 99 % within {most:.1f} ms")
    print(f"  memory: {before:.0f} MiB before, {read_memory(process):.0f} MiB after")


def read_bodies(rows: Path) -> list[str]:
    """Rows of a table as bodies of requests, null for what is missing."""
    import pandas as pd

    lines = pd.read_csv(rows).head(200)
    return [json.dumps({"row": json.loads(line)}) for line in lines.to_json(orient="records", lines=True).splitlines()]


if __name__ == "__main__":
    main()
