"""The sides of the browser benchmark: the agent, and peers that are started anew for each job."""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agents import Agent
from process_trees import Peaks, shares_mb, tree_cpu_s, wait_until_quiet
from processes import own_cpu_s

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from runners.scripting.node.runtimes import Runtimes
from runners.scripting.playwright.chromium import make_registry
from sandbox.processes import read_tag

HERE = Path(__file__).resolve().parent
_ROUND_LIMIT_S = 240
KEEPING = "npx, as we record"
"""Playwright's name for what a scheduled run of ours records: all, kept where a test fails."""
_REGISTRY = "browsers"
"""Where it finds its encoder of videos."""
_KEEPING_CONFIG = """
const { use } = require('./playwright.config.js');
const mode = 'retain-on-failure';
module.exports = { use: { ...use, trace: mode, video: mode, screenshot: 'only-on-failure' } };
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturated:
    """Jobs with all cores busy."""

    cpu_s: float
    """Of one job."""
    per_min: float
    """By the clock, on all cores together."""
    agent_s: float = 0.0
    """CPU time of the agent itself, within that of the job. A peer has none."""

    @property
    def per_min_per_core(self) -> float:
        """Checks per minute of one core's time."""
        return 60 / self.cpu_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The same script for all sides."""

    name: str
    check_type: str
    script: str
    journey: str | None
    """The same for @elastic/synthetics. None: it has no such thing."""


class Side(Protocol):
    """One way to run a workload."""

    name: str

    def saturated(self, *, jobs: int, at_once: int) -> Saturated:
        """So many jobs."""

    def single_ms(self) -> float:
        """One job, with nothing else under way."""

    def peak_mb(self) -> float:
        """The most that one job's processes hold together."""


@dataclass(frozen=True, slots=True)
class Ours:
    """Jobs of the agent: claimed, run, delivered."""

    agent: Agent
    workload: Workload
    name: str = "ours"

    def saturated(self, *, jobs: int, at_once: int) -> Saturated:
        """From idle to idle, so that what waits for the next jobs is counted as often as made."""
        wait_until_quiet(self.agent.pid)
        before, own_before = tree_cpu_s(self.agent.pid), own_cpu_s(self.agent.pid)
        tally = self._run(jobs=jobs, at_once=at_once)
        wait_until_quiet(self.agent.pid)
        used_s = tree_cpu_s(self.agent.pid) - before
        return Saturated(
            cpu_s=used_s / jobs,
            per_min=jobs / tally["took_ms"] * 60_000,
            agent_s=(own_cpu_s(self.agent.pid) - own_before) / jobs,
        )

    def single_ms(self) -> float:
        """From the moment that the job can be claimed to the arrival of its result."""
        wait_until_quiet(self.agent.pid)
        return float(self._run(jobs=1, at_once=1)["took_ms"])

    def peak_mb(self) -> float:
        """Without the agent itself, and without what waits for other jobs."""
        wait_until_quiet(self.agent.pid)
        with Peaks(self.agent.pid, read_tag) as peaks:
            self._run(jobs=1, at_once=1)
        return peaks.highest_mb

    def idle_mb(self) -> float:
        """What waits for jobs."""
        wait_until_quiet(self.agent.pid)
        return sum(shares_mb(self.agent.pid, read_tag).values())

    def _run(self, *, jobs: int, at_once: int) -> dict[str, Any]:
        spec = {"type": self.workload.check_type, "script": self.workload.script}
        tally = self.agent.order(
            {
                "spec": spec,
                "for_s": _ROUND_LIMIT_S,
                "at_once": at_once,
                "most": jobs,
                "deadline_s": 120,
            }
        )
        if tally["wrong"] or tally["done"] != jobs:
            raise RuntimeError(f"Of {jobs} jobs {tally['wrong']} went wrong: {tally['example']}")
        return tally


@dataclass(frozen=True, slots=True)
class Peer:
    """A command that runs one job and ends."""

    name: str
    command: tuple[str, ...]
    folder: Path
    env: Mapping[str, str]

    def saturated(self, *, jobs: int, at_once: int) -> Saturated:
        """So many commands."""
        tally = self._run(jobs=jobs, at_once=at_once)
        return Saturated(cpu_s=tally["cpu_s"] / jobs, per_min=jobs / tally["wall_s"] * 60)

    def single_ms(self) -> float:
        """From the start of the command to its end."""
        return statistics.median(self._run(jobs=1, at_once=1)["each_ms"])

    def peak_mb(self) -> float:
        """All that the command starts, itself included."""
        return float(self._run(jobs=1, at_once=1, sample=True)["peak_mb"])

    def _run(self, *, jobs: int, at_once: int, sample: bool = False) -> dict[str, Any]:
        order = {
            "command": self.command,
            "folders": [str(_project(self.folder, number)) for number in range(at_once)],
            "jobs": jobs,
            "sample": sample,
        }
        driver = (sys.executable, str(HERE / "browser_drive.py"), json.dumps(order))
        said = subprocess.run(
            driver, env=dict(self.env), stdout=subprocess.PIPE, check=True, timeout=_ROUND_LIMIT_S
        )
        tally: dict[str, Any] = json.loads(said.stdout)
        return tally


def lay_out_peers(
    folder: Path, workload: Workload, *, modules: Path, runtimes: Runtimes, at_once: int
) -> None:
    """The projects that the peers are started in: one for each that runs at a time."""
    browser, ffmpeg = runtimes.browser, runtimes.ffmpeg
    if browser is None:
        raise RuntimeError("There is no Chromium on this machine.")
    for number in range(at_once):
        _lay_out_project(_project(folder, number), workload, modules=modules, browser=browser)
    if ffmpeg is not None and workload.journey is not None:
        make_registry(folder / _REGISTRY, _project(folder, 0), browser=None, ffmpeg=ffmpeg)


def _project(folder: Path, number: int) -> Path:
    return folder / str(number)


def _lay_out_project(folder: Path, workload: Workload, *, modules: Path, browser: Path) -> None:
    tests, journeys = folder / "tests", folder / "journeys"
    for one in (tests, journeys):
        one.mkdir(parents=True)
    (folder / "package.json").write_text('{"name": "bench", "private": true}')
    (folder / "node_modules").symlink_to(modules)
    (tests / "page.spec.js").write_text(workload.script)
    (journeys / "page.journey.js").write_text(workload.journey or "")
    program = json.dumps(str(browser))
    (folder / "playwright.config.js").write_text(
        f"module.exports = {{ use: {{ launchOptions: {{ executablePath: {program} }} }} }};\n"
    )
    (folder / "keeping.config.js").write_text(_KEEPING_CONFIG)
    (folder / "synthetics.config.js").write_text(
        f"module.exports = () => ({{ playwrightOptions: {{ executablePath: {program} }} }});\n"
    )


def peers_of(folder: Path, workload: Workload, *, node: Path) -> list[Side]:
    """The peers that can run a workload; the first is the one that we are compared with."""
    env = {
        "PATH": f"{node.parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        # Whether npm itself is up to date is asked of the network, sometimes.
        "npm_config_update_notifier": "false",
        **{name: os.environ[name] for name in ("TMPDIR",) if name in os.environ},
    }
    test = ("npx", "playwright", "test")
    synthetics = ("npx", "@elastic/synthetics", "journeys", "--no-throttling")
    commands = {"npx playwright test": test}
    if workload.journey is not None:
        commands["@elastic/synthetics"] = synthetics
    peers: list[Side] = [Peer(name, line, folder, env) for name, line in commands.items()]
    if (folder / _REGISTRY).is_dir():
        keeping = (*test, "--config", "keeping.config.js")
        registry = {"PLAYWRIGHT_BROWSERS_PATH": str(folder / _REGISTRY)}
        peers.append(Peer(KEEPING, keeping, folder, env | registry))
    return peers
