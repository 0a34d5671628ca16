"""For machines that stand still for seconds at any moment: limits that no test is about are far.

A test that is about a limit sets it itself.
"""

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

LONG_S: Final = 60.0
"""Longer than any machine stands still, shorter than a test may take."""
OFTEN: Final = range(20)
"""For what a machine that stands still may spoil once or twice, and a broken rule each time."""
GROWING_S: Final = (0.3, 3.0, 30.0)
"""Time limits to try in turn, where a test needs that some steps are taken before time is up."""

BLOCKS: Final = "for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);"
"""JavaScript that keeps its thread as an endless loop does, and no processor with it."""

RUNNERS_LIMITS: Final = (
    "runners.dns.SERVER_TIMEOUT_S",
    "runners.api.LIMIT_S",
    "runners.net.http.probe.REASON_TIMEOUT_S",
    "runners.scripting.playwright.warm_pool._TAKEN_S",
    "runners.net.dns.resolve.LOOKUP_TIMEOUT_S",
    "runners.net.dns.resolve.SERVER_TIMEOUT_S",
    "runners.tcp.PATIENCE_S",
    "runners.tcp.UNASKED_PATIENCE_S",
)
AGENT_LIMITS: Final = ("agent.self_test.LIMIT_S", "agent.jobs.source._REPEAT_LIMIT_S")


@pytest.fixture
def patient_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply is waited for as long as the check has time."""
    monkeypatch.setattr("runners.icmp.LATE_REPLY_S", LONG_S)


@pytest.fixture
def hasty_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pings that nobody answers are over at once, long before the check's time is."""
    monkeypatch.setattr("runners.icmp.LATE_REPLY_S", 0.1)
    monkeypatch.setattr("runners.icmp.ECHO_INTERVAL_S", 0.01)


def eventually(holds: Callable[[], object]) -> None:
    """Wait, in a test without a loop, until something holds that nobody announces."""
    give_up = time.monotonic() + LONG_S
    while not holds():
        assert time.monotonic() < give_up, "it did not come to hold"
        time.sleep(0.02)


def descriptors() -> set[str]:
    """What this process has open, rubbish of earlier tests taken out before.

    What others left may still be closed while a test goes on: ask whether anything is new.
    """
    gc.collect()
    return {path.name for path in Path("/proc/self/fd").iterdir()}
