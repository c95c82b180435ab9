"""Commands that are killed leave nothing half written, and nothing for good."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

if os.name == "nt":
    pytest.skip("Windows has no such signals", allow_module_level=True)

from scripts import kill_commands
from scripts.kill_commands import N_ROWS, N_SIGNALS, prepare_commands, send_signals


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_commands_leave_nothing_half_written(number: signal.Signals, tmp_path: Path) -> None:
    """Outputs are as before or whole; one more run of each command sweeps what kill -9 left."""
    tally = send_signals(prepare_commands(tmp_path, N_ROWS), number, N_SIGNALS)
    assert not tally["faults"]
    assert tally["drafts_left_after_one_more_run"] == 0
    assert tally["ended_by_it"] > 0


@pytest.mark.long
def test_a_folder_is_filled_whole_wherever_its_process_ends() -> None:
    """It gets SIGKILL or SIGTERM before every file operation, also of restoring: files are all old or all new.

    In a process of its own, which forks.
    """
    command = [sys.executable, kill_commands.__file__, "--points"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert [fault for tally in found.values() for fault in tally["faults"]] == []
    assert done.returncode == 0
    for tally in found.values():
        assert tally["points"] > 40
        assert tally["wholly_old"] > 0
        assert tally["wholly_new"] > 0
        assert tally["wholly_old"] + tally["wholly_new"] == tally["points"]
