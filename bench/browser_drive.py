"""Runs a peer's command so often, so many at once: `browser_drive.py ORDER`, as JSON.

It adopts what the command leaves behind, so that all CPU time is counted. Prints JSON.
"""

import asyncio
import json
import os
import resource
import sys
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from process_trees import Peaks, descendants

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sandbox.system_calls import adopt_orphans

_LIMIT_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What the commands took."""

    cpu_s: float
    """All of them together."""
    wall_s: float
    each_ms: list[float]
    peak_mb: float
    """Zero, where nobody looked."""


async def _run(order: dict[str, Any], folder: str) -> float:
    """One command; how long it took, in ms.

    Raises:
        RuntimeError: it failed; with what it said.
    """
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *order["command"],
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await asyncio.wait_for(process.communicate(), _LIMIT_S)
    took_ms = (time.perf_counter() - began) * 1000
    if process.returncode != 0:
        raise RuntimeError(f"{order['command']} failed:\n{said.decode(errors='replace')[-3000:]}")
    return took_ms


async def _run_all(order: dict[str, Any]) -> list[float]:
    """One folder for each that runs at a time: Playwright empties its output at the start."""
    left = iter(range(order["jobs"]))

    async def work(folder: str) -> list[float]:
        return [await _run(order, folder) for _ in left]

    by_folder = await asyncio.gather(*(work(folder) for folder in order["folders"]))
    return [took_ms for took in by_folder for took_ms in took]


def _reap_orphans() -> None:
    """Wait for what outlived its command; its CPU time counts then."""
    ends = time.monotonic() + 10
    while descendants(os.getpid()):
        if time.monotonic() > ends:
            raise RuntimeError("A peer has left processes behind.")
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        time.sleep(0.01)


def drive(order: dict[str, Any]) -> Tally:
    """Run an order: `command`, `jobs`, in which `folders`, and whether to `sample` memory."""
    adopt_orphans()
    began = time.perf_counter()
    with Peaks(os.getpid(), lambda _: "all") if order["sample"] else nullcontext() as peaks:
        each_ms = asyncio.run(_run_all(order))
    wall_s = time.perf_counter() - began
    _reap_orphans()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Tally(
        cpu_s=used.ru_utime + used.ru_stime,
        wall_s=wall_s,
        each_ms=each_ms,
        peak_mb=0.0 if peaks is None else peaks.highest_mb,
    )


if __name__ == "__main__":
    print(json.dumps(asdict(drive(json.loads(sys.argv[1])))))
