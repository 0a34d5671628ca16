"""Browser checks: the agent from claim to delivery, beside `npx playwright test` and a peer.

All sides open the same page with the same browser program, one browser per job, in turns within one
run. The last line is for machines: `browser throughput_ratio=… latency_ratio=… memory_ratio=…
multistep_ratio=… setup_cold_ms=… setup_spare_ms=…`, each ratio ours over `npx playwright test`.
See README.md beside this file.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agents import open_agent
from browser_sides import KEEPING, Ours, Saturated, Side, Workload, lay_out_peers, peers_of
from processes import free_port, resident_mb, running, wait_for_port
from setup_script import measure

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from runners.scripting.node.runtimes import Runtimes, find_runtimes

HERE = Path(__file__).resolve().parent
MODULES = HERE.parent / ".tools" / "browser-peers" / "node_modules"
RUNTIME = "2026.04"
GOALS = {
    "throughput_ratio": "at least 1.6",
    "latency_ratio": "at most 0.4",
    "memory_ratio": "at most 1.0",
    "multistep_ratio": "at least 1.9",
    "setup_cold_ms": "at most 40",
    "setup_spare_ms": "at most 12",
}
_PAGE = """
const { test, expect } = require('@playwright/test');
test('page', async ({ page }) => {
  await page.goto('URL');
  await expect(page).toHaveTitle('Tea');
});
"""
_JOURNEY = """
const { journey, step, expect } = require('@elastic/synthetics');
journey('page', ({ page }) => {
  step('open', async () => {
    await page.goto('URL');
    expect(await page.title()).toBe('Tea');
  });
});
"""
_REQUEST = """
const { test, expect } = require('@playwright/test');
test('teas', async ({ request }) => {
  const answer = await request.get('URLteas');
  expect(answer.status()).toBe(200);
  expect((await answer.json()).length).toBe(40);
});
"""


@dataclass(frozen=True, slots=True)
class Found:
    """All rounds of one side."""

    side: Side
    saturated: list[Saturated] = field(default_factory=list)
    single_ms: list[float] = field(default_factory=list)
    peak_mb: list[float] = field(default_factory=list)

    def measure(self, *, jobs: int, at_once: int, singles: int) -> None:
        """One round."""
        self.saturated.append(self.side.saturated(jobs=jobs, at_once=at_once))
        self.single_ms.extend(self.side.single_ms() for _ in range(singles))
        self.peak_mb.append(self.side.peak_mb())

    @property
    def per_min_per_core(self) -> float:
        """The median."""
        return statistics.median(one.per_min_per_core for one in self.saturated)

    def line(self) -> str:
        """What to print."""
        per_min, cpu_s, agent_s = (
            statistics.median(getattr(one, name) for one in self.saturated)
            for name in ("per_min", "cpu_s", "agent_s")
        )
        return (
            f"{self.side.name:20} {self.per_min_per_core:5.1f} per minute and core   "
            f"{cpu_s:.2f} CPU-s each{f', {agent_s:.2f} of them the agent' if agent_s else ''}   "
            f"{per_min:.0f} per minute by the clock   "
            f"alone {statistics.median(self.single_ms):.0f} ms   "
            f"at most {statistics.median(self.peak_mb):.0f} MB"
        )


def workloads(url: str) -> tuple[Workload, Workload]:
    """What is compared: a page in a browser, and a request without one."""
    page = Workload(
        name="browser",
        check_type="BROWSER",
        script=_PAGE.replace("URL", url),
        journey=_JOURNEY.replace("URL", url),
    )
    request = Workload(
        name="multistep",
        check_type="MULTI_STEP",
        script=_REQUEST.replace("URL", url),
        journey=None,
    )
    return page, request


@contextmanager
def open_page(folder: Path) -> Iterator[str]:
    """The page, for as long as the block lasts; its address."""
    port, log = free_port(), folder / "page.out"
    with running([sys.executable, HERE / "browser_page.py", str(port)], log=log) as process:
        wait_for_port(port, process, log=log)
        yield f"http://127.0.0.1:{port}/"


def compare(sides: list[Side], chosen: argparse.Namespace, *, at_once: int) -> list[Found]:
    """Measure all sides in turns, after a job each that nobody counts."""
    for side in sides:
        side.saturated(jobs=at_once, at_once=at_once)
    all_found = [Found(side) for side in sides]
    for number in range(chosen.rounds):
        for found in all_found if number % 2 == 0 else reversed(all_found):
            found.measure(jobs=chosen.jobs, at_once=at_once, singles=chosen.singles)
    for found in all_found:
        print(found.line(), flush=True)
    return all_found


def throughput_ratio(ours: Found, theirs: Found) -> float:
    """The median of the rounds' ratios."""
    pairs = zip(ours.saturated, theirs.saturated, strict=True)
    return statistics.median(mine.per_min_per_core / peer.per_min_per_core for mine, peer in pairs)


def measure_agent(runtimes: Runtimes, chosen: argparse.Namespace) -> dict[str, float]:
    """All that is measured with an agent."""
    node = runtimes.get(RUNTIME).node
    at_once = os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="picket-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o711)  # a script's own user must get to its run
        url = stack.enter_context(open_page(folder))
        settings = {"JOB_CONCURRENCY": str(at_once), "CHROMIUM_PATH": str(runtimes.browser)}
        agent = stack.enter_context(open_agent(folder, settings))
        by_name = {}
        for workload in workloads(url):
            place = folder / workload.name
            lay_out_peers(place, workload, modules=MODULES, runtimes=runtimes, at_once=at_once)
            ours = Ours(agent, workload)
            peers = peers_of(place, workload, node=node)
            print(f"{workload.name}:", flush=True)
            by_name[workload.name] = compare([ours, *peers], chosen, at_once=at_once)
            print(f"{'':20} warm processes: {ours.idle_mb():.0f} MB", flush=True)
        _tell_like_for_like(by_name["browser"])
        print(f"the agent itself: {resident_mb(agent.pid):.0f} MB")
    return _ratios(by_name)


def _ratios(by_name: dict[str, list[Found]]) -> dict[str, float]:
    ours, theirs, *_ = by_name["browser"]
    return _ratios_over(ours, theirs) | {"multistep_ratio": throughput_ratio(*by_name["multistep"])}


def _ratios_over(ours: Found, theirs: Found) -> dict[str, float]:
    return {
        "throughput_ratio": throughput_ratio(ours, theirs),
        "latency_ratio": statistics.median(ours.single_ms) / statistics.median(theirs.single_ms),
        "memory_ratio": statistics.median(ours.peak_mb) / statistics.median(theirs.peak_mb),
    }


def _tell_like_for_like(all_found: list[Found]) -> None:
    """Over a Playwright that records what a scheduled run of ours does."""
    for theirs in all_found:
        if theirs.side.name == KEEPING:
            ratios = _ratios_over(all_found[0], theirs).items()
            print("like for like: " + " ".join(f"{name}={value:.2f}" for name, value in ratios))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="of each side")
    parser.add_argument("--jobs", type=int, default=8, help="of one round, with all cores busy")
    parser.add_argument("--singles", type=int, default=3, help="jobs of one round that run alone")
    parser.add_argument("--looks", type=int, default=40, help="API checks with a setup script")
    return parser.parse_args()


def main() -> None:
    """Run the whole benchmark."""
    chosen = _arguments()
    runtimes = find_runtimes()
    runtime = runtimes.get(RUNTIME)
    print(
        f"Chromium {runtimes.browser_version}, Node {runtime.node_version}, "
        f"Playwright {runtime.playwright} on {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}"
    )
    found = measure_agent(runtimes, chosen) | asyncio.run(measure(chosen.looks))
    for name, value in found.items():
        print(f"{name:16} {value:6.2f}, goal {GOALS[name]}")
    print(f"load {os.getloadavg()[0]:.1f} at the end")
    print("browser " + " ".join(f"{name}={value:.2f}" for name, value in found.items()))


if __name__ == "__main__":
    main()
