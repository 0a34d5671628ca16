"""The agent under measurement: `python -m agent`, fed by the stub of the service."""

import json
import os
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processes import free_port, running, wait_for_port

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
KEY = "pl_benchmark_key_0123456789"
_ANSWER_WITHIN_S = 400


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent, and the stub that feeds it."""

    pid: int
    stub_port: int

    def order(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Have the stub hand out jobs (`stub.Order`); its tally, when none is out any more."""
        url = f"http://127.0.0.1:{self.stub_port}/bench/round"
        request = urllib.request.Request(url, json.dumps(order).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=_ANSWER_WITHIN_S) as answer:
            tally: dict[str, Any] = json.loads(answer.read())
            return tally


@contextmanager
def open_agent(folder: Path, settings: Mapping[str, str]) -> Iterator[Agent]:
    """A service stub and the agent that works for it, with further settings."""
    stub_port, health_port = free_port(), free_port()
    stub_log, log = folder / "stub.out", folder / "agent.out"
    own = {
        "API_KEY": KEY,
        "SERVICE_URL": f"http://127.0.0.1:{stub_port}",
        "AGENT_DATA_DIR": str(folder / "agent"),
        "AGENT_HEALTH_PORT": str(health_port),
        "HEARTBEAT_PORT": "0",
        "LOG_LEVEL": "INFO",
        "LOG_FORMAT": "json",
        "PYTHONPATH": str(ROOT),
    }
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    env = {**kept, **own, **settings}
    stub = [sys.executable, HERE / "stub.py", str(stub_port)]
    with ExitStack() as stack:
        process = stack.enter_context(running(stub, log=stub_log, env=env))
        wait_for_port(stub_port, process, log=stub_log)
        agent = stack.enter_context(running([sys.executable, "-m", "agent"], log=log, env=env))
        wait_for_port(health_port, agent, log=log)
        _wait_until_ready(health_port, log)
        yield Agent(agent.pid, stub_port)


def _wait_until_ready(port: int, log: Path) -> None:
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/-/readiness", timeout=2)
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"The agent does not get ready:\n{log.read_text()[-3000:]}")
