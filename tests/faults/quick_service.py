"""`python -m tests.faults.quick_service`: the service with short leases, which dies where told.

Everything else is the service's own `main`. `QUICK_LEASE_S`, `QUICK_QUEUE_S`, `QUICK_GIVE_UP_S` and
`QUICK_DELIVERIES` are its figures, and `QUICK_UNAVAILABLE_S`, when it is set, how long a location
may be without an agent; `QUICK_BACKOFF_S`, the longest first wait after a try of an alert;
`QUICK_MINUTE_S`, how long the minutes of alert settings are. On SIGUSR1 it tells how many tasks it
has. When the file that `KILL_FILE` names holds the name of a step, the process kills itself with
SIGKILL at that step, once: `claim`, `results`, `release`, `tick`, `reap`, `start` and `deploy` (a
deployment is noted as running, and made), each `.begun`
(changed, not committed) or `.committed` (on disk, nobody told), or on PostgreSQL `.committing`
(the server was told to commit, and nobody waits for its answer). The file `pauses` beside it says
when no tick came for long, because the service was dead or stood still.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from service import __main__
from service import __main__ as program

with __main__.loading():  # as the service itself
    from sqlalchemy import Connection

    from contract.checks import Lane
    from service import app
    from service.agents import api, presence, submissions
    from service.alert_channels import rules as channel_rules
    from service.alerting import rules as alert_rules
    from service.db import databases, postgresql_group, sqlite, sqlite_group
    from service.db.postgresql_faults import driver
    from service.jobs import long_poll, model, rules, settle
    from service.locations import health
    from service.locations import rules as location_rules
    from service.projects import actions as deployments
    from service.projects import making
    from service.results import ingest
    from service.scheduling import tick as schedule
    from service.scheduling.model import Ticked
    from tests.faults.counted_tasks import tell_tasks_when_asked

_REAP_S: Final = 0.2
_LOOK_S: Final = 0.5
_BUSY_TIMEOUT_S: Final = 0.2
_PAUSE_MS: Final = 5_000


def shrink(*, lease_s: float, queue_s: float, give_up_s: float, deliveries: int) -> None:
    """Put other figures in the place of the service's own."""
    lease_ms, queue_ms = round(lease_s * 1000), round(queue_s * 1000)
    model.LEASE_MS.update({Lane.UPTIME: lease_ms, Lane.MAIN: lease_ms})
    for module in (model, rules, ingest):
        _put(module, "QUEUE_MS", queue_ms)
    _put(settle, "_RESTART_GRACE_MS", lease_ms)
    _put(deployments, "LEASE_MS", lease_ms)
    _put(rules, "MOST_DELIVERIES", deliveries)
    _put(rules, "SEEN_MS", 0)
    _put(app, "_REAP_S", _REAP_S)
    hasty = partial(sqlite.open_sqlite, busy_timeout_s=_BUSY_TIMEOUT_S, give_up_s=give_up_s)
    _put(databases, "open_sqlite", hasty)


def watch_locations(*, unavailable_s: float) -> None:
    """Take a location for unavailable sooner, and write down sooner who was seen."""
    _put(location_rules, "UNAVAILABLE_AFTER_MS", round(unavailable_s * 1000))
    _put(location_rules, "RETURN_MS", 0)
    _put(health, "RETURN_MS", 0)
    _put(presence, "_EVERY_S", _LOOK_S)
    _put(app, "_LOOK_S", _LOOK_S)


def hurry_alerts(*, backoff_s: float, minute_s: float) -> None:
    """Try notifications again sooner, and count shorter minutes."""
    _put(channel_rules, "_FIRST_WAIT_MS", round(backoff_s * 1000))
    _put(channel_rules, "_LONGEST_BACKOFF_MS", round(4 * backoff_s * 1000))
    _put(alert_rules, "_MINUTE_MS", round(minute_s * 1000))


def watch_ticks(folder: Path) -> None:
    """Write down the pauses between ticks, those of dead services included."""
    tick = schedule.tick
    last = os.open(folder / "last-tick", os.O_RDWR | os.O_CREAT)

    def ticking(connection: Connection, *, now_ms: int) -> Ticked:
        before_ms = int(os.pread(last, 20, 0) or now_ms)
        os.pwrite(last, b"%d" % now_ms, 0)
        if now_ms - before_ms >= _PAUSE_MS:
            with (folder / "pauses").open("a") as pauses:
                pauses.write(f"{before_ms} {now_ms}\n")
        return tick(connection, now_ms=now_ms)

    _put(schedule, "tick", ticking)


class Executioner:
    """Ends the process at a step that somebody chose while it ran."""

    def __init__(self, order: Path) -> None:
        self._order = order
        self._under_way = threading.local()
        """`steps`: those that the transaction of this thread has passed."""

    def watch(self) -> None:
        """Put itself between the service and its database."""
        _put(long_poll, "assign_jobs", self._at("claim", long_poll.assign_jobs, did=_did_deal))
        _put(submissions, "take_results", self._at("results", submissions.take_results))
        _put(api, "release", self._at("release", api.release, did=lambda _: True))
        _put(
            schedule, "tick", self._at("tick", schedule.tick, did=lambda ticked: ticked.checks > 0)
        )
        _put(settle, "expire_jobs", self._at("reap", settle.expire_jobs))
        _put(deployments, "start", self._at("start", deployments.start))
        _put(making, "deploy", self._at("deploy", making.deploy))
        carry_out = self._looking(sqlite_group.carry_out)
        for module in (sqlite, sqlite_group):  # on the loop, and on the writer's thread
            _put(module, "carry_out", carry_out)
        _put(sqlite, "carry_out_together", self._looking(sqlite_group.carry_out_together))
        for name in ("_make_each", "_make_together"):
            _put(postgresql_group, name, self._committing(getattr(postgresql_group, name)))
        in_transaction = postgresql_group._in_transaction
        _put(postgresql_group, "_in_transaction", self._looking(in_transaction))

    def _looking(self, carry_out: Callable[..., Any]) -> Callable[..., Any]:
        def carry_out_and_look(*given: Any) -> Any:
            self._under_way.steps = []
            settled = carry_out(*given)
            for step in self._under_way.steps if settled is not None else ():
                self._end_if_ordered(f"{step}.committed")
            return settled

        return carry_out_and_look

    def _committing(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def make_and_commit(connection: Connection, group: Any) -> Any:
            settled = make(connection, group)
            for step in self._under_way.steps:
                if self._is_ordered(f"{step}.committing"):
                    driver(connection).pgconn.send_query(b"COMMIT")
                    os.kill(os.getpid(), signal.SIGKILL)
            return settled

        return make_and_commit

    def _at(
        self, step: str, change: Callable[..., Any], *, did: Callable[[Any], bool] = bool
    ) -> Callable[..., Any]:
        @wraps(change)
        def changing(*given: Any, **named: Any) -> Any:
            made = change(*given, **named)
            if did(made):
                self._end_if_ordered(f"{step}.begun")
                self._under_way.steps.append(step)
            return made

        return changing

    def _end_if_ordered(self, step: str) -> None:
        if self._is_ordered(step):
            os.kill(os.getpid(), signal.SIGKILL)

    def _is_ordered(self, step: str) -> bool:
        """Whether the process is to end here; the order is taken away."""
        try:
            ordered = self._order.read_text()
        except FileNotFoundError:
            return False
        if ordered == step:
            self._order.unlink()
        return ordered == step


def _did_deal(dealt: Any) -> bool:
    return any(dealt.jobs)


def _put(module: ModuleType, name: str, value: object) -> None:
    """Replace what is there; a name that was changed meanwhile must not pass unseen."""
    if not hasattr(module, name):
        raise AttributeError(f"{module.__name__} has no {name} any more; fix quick_service")
    setattr(module, name, value)


def load() -> None:
    """What `main` would load."""
    with __main__.loading():
        from service import serving  # noqa: F401, PLC0415 - for a nursery, which need not serve


def main() -> int:
    """The service's own `main`, in a hurry."""
    tell_tasks_when_asked()
    shrink(
        lease_s=float(os.environ["QUICK_LEASE_S"]),
        queue_s=float(os.environ["QUICK_QUEUE_S"]),
        give_up_s=float(os.environ["QUICK_GIVE_UP_S"]),
        deliveries=int(os.environ["QUICK_DELIVERIES"]),
    )
    if given := os.environ.get("QUICK_UNAVAILABLE_S"):
        watch_locations(unavailable_s=float(given))
    if given := os.environ.get("QUICK_BACKOFF_S"):
        hurry_alerts(backoff_s=float(given), minute_s=float(os.environ["QUICK_MINUTE_S"]))
    order = Path(os.environ["KILL_FILE"])
    watch_ticks(order.parent)
    Executioner(order).watch()
    return program.main()


if __name__ == "__main__":
    sys.exit(main())
