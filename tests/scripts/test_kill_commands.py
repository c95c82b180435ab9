"""Commands that are killed leave nothing half written, and nothing for good."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

if os.name == "nt":
    pytest.skip("Windows has no such signals", allow_module_level=True)

from scripts.kill_commands import N_ROWS, N_SIGNALS, prepare_commands, send_signals


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_commands_leave_nothing_half_written(number: signal.Signals, tmp_path: Path) -> None:
    """Outputs are as before or whole; one more run of each command sweeps what kill -9 left."""
    tally = send_signals(prepare_commands(tmp_path, N_ROWS), number, N_SIGNALS)
    assert not tally["faults"]
    assert tally["drafts_left_after_one_more_run"] == 0
    assert tally["ended_by_it"] > 0
