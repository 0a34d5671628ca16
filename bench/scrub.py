"""Make a trace archive clean as the agent does, beside a plain loop of `bytes.replace`.

The archive is synthetic and the same in each run. Its raw forms only are what the plain loop looks
for; ours looks for all, unpacks and packs. The last line is for machines:
`scrub mb_s_1=… mb_s_10=… mb_s_40=… rss_mb=… lag_p99_ms=…`. See README.md beside this file.
"""

import argparse
import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from scrub_archive import contents_of, secrets_of, write_archive

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from redaction.clean import Passed
from redaction.files import clean_in_child
from redaction.files_child import TURN_S, hide_in_file
from redaction.scanner.scan import scan_file
from sandbox.workspace import RunFile, Workspace

GOALS: Final = {
    "mb_s_1": "at least 80",
    "mb_s_10": "at least 80",
    "mb_s_40": "at least 30",
    "rss_mb": "at most 64",
    "lag_p99_ms": "at most 5",
}
COUNTS: Final = (1, 10, 40)
TICK_S: Final = 0.01
LIMIT_S: Final = 600.0
ROUNDS: Final = 3
"""Of the scrubber by itself: the least disturbed counts."""


def replace_plainly(contents: Iterator[bytes], secrets: tuple[str, ...]) -> float:
    """The least that could be done; its CPU time in seconds."""
    taken_s = 0.0
    for content in contents:
        started = time.process_time()
        for secret in secrets:
            content.replace(secret.encode(), b"*********")
        taken_s += time.process_time() - started
    return taken_s


def cpu_and_clock_s(work: Callable[[], object]) -> tuple[float, float]:
    """What it takes in this process."""
    cpu, clock = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - clock


def children_cpu_s() -> float:
    """Of those that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def child_mb() -> float:
    """The most that the child has held so far. 0: there is none."""
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    with suppress(OSError, IndexError):
        status = Path(f"/proc/{listed[0]}/status").read_text()
        return float(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
    return 0.0


async def cleaned(file: RunFile, secrets: tuple[str, ...]) -> tuple[float, list[float]]:
    """Its child's memory, and how late the event loop woke meanwhile."""
    task = asyncio.create_task(clean_in_child([file], secrets, limit_s=LIMIT_S))
    lags, most_mb = [], 0.0
    while not task.done():
        started = time.perf_counter()
        await asyncio.sleep(TICK_S)
        lags.append(time.perf_counter() - started - TICK_S)
        most_mb = max(most_mb, child_mb())
    (verdict,) = await task
    if not isinstance(verdict, Passed):
        raise SystemExit(f"the archive is withheld: {verdict.because}")
    return most_mb, lags


def p99_ms(lags: list[float]) -> float:
    """In milliseconds."""
    return sorted(lags)[int(len(lags) * 0.99)] * 1000


async def idle_lags(duration_s: float) -> list[float]:
    """What this machine does to a process with nothing to do."""
    lags, until = [], time.perf_counter() + duration_s
    while (started := time.perf_counter()) < until:
        await asyncio.sleep(TICK_S)
        lags.append(time.perf_counter() - started - TICK_S)
    return lags


def in_folder(folder: Path, archive: Path) -> RunFile:
    """A copy to make clean."""
    workspace = Workspace(folder)
    shutil.copyfile(archive, workspace.folder / "trace.zip")
    return RunFile(workspace.folder / "trace.zip", workspace.artifact("trace.zip", "trace"))


def measure(count: int, size_mb: int, folder: Path) -> dict[str, float]:
    """One number of secrets, in a process that did nothing before."""
    secrets, archive, small = secrets_of(count), folder / "whole.zip", folder / "small.zip"
    write_archive(archive, secrets, size_mb * 1_000_000)
    write_archive(small, secrets, 20_000)
    content_mb = sum(map(len, contents_of(archive))) / 1e6
    plain_s = replace_plainly(contents_of(archive), secrets)
    base_mb, _ = asyncio.run(cleaned(in_folder(folder, small), secrets[:1]))
    before_s, started = children_cpu_s(), time.perf_counter()
    most_mb, lags = asyncio.run(cleaned(in_folder(folder, archive), secrets))
    child_clock_s, child_s = time.perf_counter() - started, children_cpu_s() - before_s
    files = [in_folder(folder, archive) for _ in range(ROUNDS)]
    sys.setswitchinterval(TURN_S)
    rounds = [cpu_and_clock_s(partial(hide_in_file, file, secrets)) for file in files]
    scrub_s, scrub_clock_s = map(min, zip(*rounds, strict=True))
    file = files[0]
    scan_s, scan_clock_s = cpu_and_clock_s(lambda: scan_file(file.path, secrets))
    return {
        "plain": content_mb / plain_s,
        "scrub": content_mb / scrub_s,
        "scrub_clock": content_mb / scrub_clock_s,
        "scan": content_mb / scan_s,
        "scan_clock": content_mb / scan_clock_s,
        "child": content_mb / child_s,
        "child_clock": content_mb / child_clock_s,
        "scan_share": scan_s / (scrub_s + scan_s),
        "rss_mb": most_mb - base_mb,
        "lag_p99_ms": p99_ms(lags),
        "idle_lag_ms": p99_ms(asyncio.run(idle_lags(2))),
    }


def measured_apart(count: int, size_mb: int) -> dict[str, float]:
    """The same in a process of its own, told as it comes."""
    command = [sys.executable, __file__, "--only", str(count), "--mb", str(size_mb)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    seen: dict[str, float] = json.loads(done.stdout)
    print(
        f"{count} secrets, MB/s of CPU time (by the clock):"
        f" scrub {seen['scrub']:.0f} ({seen['scrub_clock']:.0f}),"
        f" scan {seen['scan']:.0f} ({seen['scan_clock']:.0f}), {seen['scan_share']:.0%} of both,"
        f" the whole child {seen['child']:.0f} ({seen['child_clock']:.0f});"
        f" raw forms by bytes.replace {seen['plain']:.0f};"
        f" {seen['rss_mb']:.0f} MB above the base;"
        f" lag {seen['lag_p99_ms']:.1f} ms, {seen['idle_lag_ms']:.1f} ms beside nothing",
        flush=True,
    )
    return seen


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=100, help="how much content")
    parser.add_argument("--only", type=int, help="one number of secrets, told as JSON")
    wanted = parser.parse_args()
    if wanted.only:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure(wanted.only, wanted.mb, Path(folder))))
        return
    apart = {count: measured_apart(count, wanted.mb) for count in COUNTS}
    figures = {f"mb_s_{count}": apart[count]["scrub_clock"] for count in COUNTS}
    figures["rss_mb"] = max(each["rss_mb"] for each in apart.values())
    figures["lag_p99_ms"] = apart[10]["lag_p99_ms"]
    for name, goal in GOALS.items():
        print(f"{name}: {figures[name]:.1f} ({goal})")
    print("scrub " + " ".join(f"{name}={figures[name]:.1f}" for name in GOALS))


if __name__ == "__main__":
    main()
