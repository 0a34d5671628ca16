"""Tells of each operation as soon as a run against the document is done with it.

Loaded by the generator itself (`hooks` in schemathesis.toml), whose own lines come at the end of a
phase: an hour of silence is nothing to find a slow operation by.

Bounds of a text's length stay out of its pattern here. The generator writes both as one, as in
`^[^\\x00]{0,32768}$`, and compiles that for each operation: nine tenths of a run's CPU time.
"""

from typing import Any

import schemathesis.cli
from schemathesis.engine import Status, events
from schemathesis.specs.openapi import converter

assert callable(converter.update_pattern_in_schema), "mend told.py: it is called otherwise now"
converter.update_pattern_in_schema = lambda _schema: None  # type: ignore[assignment]


@schemathesis.cli.handler()
class ToldAsItGoes(schemathesis.cli.EventHandler[Any]):
    """One line for each phase of each operation, and what failed in it; the sum at the end."""

    def __init__(self, *_args: Any, **_params: Any) -> None:
        self._requests = 0

    def handle_event(self, _ctx: Any, event: events.EngineEvent) -> None:
        """What the generator calls."""
        if isinstance(event, events.ScenarioFinished):
            self._tell(event)
        if isinstance(event, events.EngineFinished):
            print(f"{self._requests} requests in {event.running_time:.0f} s", flush=True)  # noqa: T201 - it is what this is for

    def _tell(self, event: events.ScenarioFinished) -> None:
        requests = len(event.recorder.interactions)
        self._requests += requests
        # A story is as short as a request, and there are thousands of both together.
        if event.status is Status.SUCCESS and event.phase.value == "stateful":
            return
        what = event.label or "a story"
        said = f"{event.phase.value} {what}: {requests} requests, {event.elapsed_time:.1f} s, "
        print(said + event.status.value, flush=True)  # noqa: T201 - it is what this is for
        for failure in _failures(event):
            print(f"  {failure}", flush=True)  # noqa: T201 - it is what this is for


def _failures(event: events.ScenarioFinished) -> list[str]:
    nodes = [node for nodes in event.recorder.checks.values() for node in nodes]
    seen = [node.failure_info.failure for node in nodes if node.failure_info is not None]
    return sorted({f"{one.title}: {one.message}" for one in seen})[:20]
