"""Checks per CPU-second: the agent from claim to delivery, beside Debian's blackbox_exporter.

Both probe the same targets on loopback, in turns within one run; only the CPU time of the measured
process counts. The last line is for machines: `ratio url=… https=… tcp=… dns=… icmp=… accuracy=…`.
See README.md beside this file.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml
from agents import Agent, open_agent
from kinds import Kind, blackbox_modules, delayed, kinds_for
from processes import cpu_s, free_port, resident_mb, running, wait_for_port
from targets import DELAY_MS, Targets, open_targets

HERE = Path(__file__).resolve().parent
WARM_UP_S = 0.5
MOST_LOST = 0.01
"""Part of the peer's probes that may fail: it loses pings when there are many. Ours may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One round of one side."""

    per_cpu_s: float
    per_s: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Ours:
    """Our side."""

    agent: Agent

    def round(self, kind: Kind, for_s: float) -> Measured:
        """Run checks of this kind for so long."""
        order = {"spec": kind.spec, "for_s": for_s, "at_once": kind.ours_at_once}
        before, began = cpu_s(self.agent.pid), time.monotonic()
        tally = self.agent.order(order)
        if tally["wrong"]:
            raise RuntimeError(_did_not_pass(kind, tally))
        return _measured(tally, cpu_s(self.agent.pid) - before, time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class Blackbox:
    """The peer."""

    pid: int
    port: int

    def round(self, kind: Kind, for_s: float) -> Measured:
        """Ask for probes of this kind for so long."""
        path = "/probe?" + urlencode({"target": kind.target, "module": kind.module})
        words = (self.port, path, kind.theirs_at_once, for_s)
        command = [sys.executable, str(HERE / "drive.py"), *map(str, words)]
        before, began = cpu_s(self.pid), time.monotonic()
        tally = json.loads(subprocess.check_output(command, timeout=for_s + 60))
        if tally["wrong"] > MOST_LOST * tally["done"]:
            raise RuntimeError(_did_not_pass(kind, tally))
        return _measured(tally, cpu_s(self.pid) - before, time.monotonic() - began)


@contextmanager
def open_blackbox(folder: Path, targets: Targets) -> Iterator[Blackbox]:
    """The peer, for as long as the block lasts."""
    port, config, log = free_port(), folder / "blackbox.yml", folder / "blackbox.out"
    config.write_text(yaml.safe_dump(blackbox_modules(targets.ca_file)))
    command = (
        "prometheus-blackbox-exporter",
        f"--config.file={config}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
    )
    with running(command, log=log) as process:
        wait_for_port(port, process, log=log)
        yield Blackbox(process.pid, port)


def _without_node(folder: Path, targets: Targets) -> dict[str, str]:
    """As the light image: a browser's boot check is no part of what is measured."""
    no_runtimes = folder / "no-runtimes"
    no_runtimes.mkdir()
    return {"EXTRA_CA_CERTS": str(targets.ca_file), "PICKET_RUNTIMES": str(no_runtimes)}


def _did_not_pass(kind: Kind, tally: Mapping[str, Any]) -> str:
    wrong, done = tally["wrong"], tally["done"]
    return f"{wrong} of {done} {kind.name} checks did not pass: {tally['example']}"


def _measured(tally: Mapping[str, Any], used_s: float, took_s: float) -> Measured:
    times_ms = sorted(tally["times_ms"])
    p99_ms = times_ms[int(len(times_ms) * 0.99)] if times_ms else 0.0
    done = tally["done"]
    return Measured(per_cpu_s=done / used_s, per_s=done / took_s, p99_ms=p99_ms)


def compare(agent: Ours, blackbox: Blackbox, kind: Kind, *, rounds: int, for_s: float) -> float:
    """Measure both sides in turns, print what came out, and return ours over theirs."""
    agent.round(kind, WARM_UP_S)
    blackbox.round(kind, WARM_UP_S)
    ours, theirs = [], []
    for number in range(rounds):
        sides = [(agent, ours), (blackbox, theirs)]
        for side, found in sides if number % 2 == 0 else reversed(sides):
            found.append(side.round(kind, for_s))
    if kind.name == "accuracy":
        return _accuracy(kind, ours, theirs)
    ratio = statistics.median(
        mine.per_cpu_s / peer.per_cpu_s for mine, peer in zip(ours, theirs, strict=True)
    )
    print(
        f"{kind.name:9} ours {_median(ours, 'per_cpu_s'):8.0f} per CPU-s "
        f"({_median(ours, 'per_s'):6.0f} per s)   theirs {_median(theirs, 'per_cpu_s'):7.0f} "
        f"({_median(theirs, 'per_s'):6.0f} per s)   ratio {ratio:5.2f}, goal {kind.goal:g}",
        flush=True,
    )
    return ratio


def _accuracy(kind: Kind, ours: list[Measured], theirs: list[Measured]) -> float:
    mine_ms, peer_ms = (_median(side, "p99_ms") - DELAY_MS for side in (ours, theirs))
    ratio = statistics.median(
        (peer.p99_ms - DELAY_MS) / max(mine.p99_ms - DELAY_MS, 0.01)
        for mine, peer in zip(ours, theirs, strict=True)
    )
    print(
        f"{kind.name:9} p99 over {DELAY_MS} ms at {kind.ours_at_once} at once: "
        f"ours +{mine_ms:.2f} ms, theirs +{peer_ms:.2f} ms   "
        f"ratio {ratio:5.2f}, goal {kind.goal:g}",
        flush=True,
    )
    return ratio


def _median(side: list[Measured], field: str) -> float:
    return statistics.median(getattr(measured, field) for measured in side)


def main() -> None:
    """Run the whole benchmark, or the part that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of each side and kind")
    parser.add_argument("--seconds", type=float, default=2.0, help="of one round")
    parser.add_argument("--only", default="", help="kinds, with commas between")
    chosen = parser.parse_args()
    subprocess.run([HERE / "setup.sh"], check=True)
    with tempfile.TemporaryDirectory(prefix="picket-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        targets = stack.enter_context(open_targets(folder))
        blackbox = stack.enter_context(open_blackbox(folder, targets))
        agent = stack.enter_context(open_agent(folder, _without_node(folder, targets)))
        time.sleep(1)
        idle_mb = resident_mb(agent.pid)
        ratios = {
            kind.name: compare(
                Ours(agent), blackbox, kind, rounds=chosen.rounds, for_s=chosen.seconds
            )
            for kind in (*kinds_for(targets), delayed(targets))
            if not chosen.only or kind.name in chosen.only.split(",")
        }
        print(f"resident  {idle_mb:.0f} MB idle (goal 60), {resident_mb(agent.pid):.0f} MB after")
    print("ratio " + " ".join(f"{name}={ratio:.2f}" for name, ratio in ratios.items()))


if __name__ == "__main__":
    main()
