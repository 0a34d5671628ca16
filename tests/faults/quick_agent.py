"""`python -m tests.faults.quick_agent`: the agent with short waits towards its service.

Everything else is the agent's own. With `QUICK_FILE_BYTES` each run leaves a file, and with
`QUICK_TRACE` some leave the one at that path (see `filing`). `QUICK_AGENT_ID` chooses its id, so
that two can share one, `QUICK_GREED` how many jobs it asks for per free slot, and `QUICK_FLUSH_S`
how long it tries to deliver what is left when it stops.
"""

import os
import sys
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from agent import __main__

PACE: Final = {"first_s": 0.2, "cap_s": 0.5, "claim_wait_s": 2.0}
_FLUSH_S: Final = "60"
CALL_LIMIT_S: Final = 2.0
"""How long any call, or a claim past its wait, is waited for when its answer never comes."""


def load() -> None:
    """What `main` needs, but for what looks at the environment as it is loaded."""
    with __main__.undisturbed():
        __main__.load_libraries()
        import uvloop  # noqa: F401, PLC0415 - after the lean loading, as in the agent itself

        from agent import app  # noqa: F401, PLC0415 - the same
        from runners import registry  # noqa: F401, PLC0415 - the same


def main() -> int:
    """Live until told to stop; the exit code."""
    with __main__.undisturbed():
        __main__.load_libraries()
        import uvloop  # noqa: PLC0415 - after the lean loading, as in the agent itself

        from agent import app  # noqa: PLC0415 - the same
        from agent.api_client import client  # noqa: PLC0415 - the same
        from agent.api_client.retry import Pace  # noqa: PLC0415 - the same
        from agent.jobs import source  # noqa: PLC0415 - the same
        from agent.settings import read_settings  # noqa: PLC0415 - the same
        from agent.wiring import AgentOptions  # noqa: PLC0415 - the same
        from runners.registry import RUNNERS  # noqa: PLC0415 - the same
        from tests.faults.counted_tasks import tell_tasks_when_asked  # noqa: PLC0415 - the same
        from tests.faults.filing import filing, leaving  # noqa: PLC0415 - the same

    assert client.QUICK_LIMIT_S > CALL_LIMIT_S
    client.QUICK_LIMIT_S = CALL_LIMIT_S  # type: ignore[misc]
    client.ServiceClient._post.__kwdefaults__["limit_s"] = CALL_LIMIT_S
    if agent_id := os.environ.get("QUICK_AGENT_ID"):
        app.uuid = SimpleNamespace(uuid4=lambda: uuid.UUID(agent_id))  # type: ignore[attr-defined]
    make_greedy(source.ServiceSource, int(os.environ.get("QUICK_GREED", "1")))
    flush_s = float(os.environ.get("QUICK_FLUSH_S", _FLUSH_S))
    file_bytes = int(os.environ.get("QUICK_FILE_BYTES", "0"))
    runners = filing(RUNNERS, file_bytes=file_bytes) if file_bytes else RUNNERS
    if trace := os.environ.get("QUICK_TRACE"):
        runners = leaving(runners, trace=Path(trace).read_bytes())
    makeup = AgentOptions(runners=runners, pace=Pace(**PACE, flush_s=flush_s), checks_itself=False)
    tell_tasks_when_asked()
    return uvloop.run(app.run(read_settings(), makeup))


def make_greedy(kind: type[Any], greed: int) -> None:
    """Let sources of this kind ask for more jobs than there are slots."""
    new_claim = kind._build_claim

    def greedy(self: Any, slots: dict[Any, int]) -> Any:
        return new_claim(self, {lane: free * greed for lane, free in slots.items()})

    kind._build_claim = greedy


if __name__ == "__main__":
    sys.exit(main())
