"""Checks whose results make alerts, and what became of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import select

from contract.result import Failure, FailureKind, Outcome, Status
from service.alerting import actions as alerting
from service.alerting import store
from service.alerting.model import AlertFilter, StoredAlert
from service.alerting.replay import Replay, ReplayedAlert, replay
from service.alerting.rules import read_policy
from service.db.tables.alerting import alert_state
from service.results import actions as results
from service.results.model import Record
from service.results.recording import record
from tests.builders.stored_results import a_record
from tests.builders.world import World

STATUSES: Final = {"P": Status.PASSED, "D": Status.DEGRADED, "F": Status.FAILED}
MINUTE_S: Final = 60.0
FOR_EVER: Final = 1 << 60


def settings(**fields: Any) -> dict[str, Any]:
    """The body of a check with alert settings of its own."""
    return {"useGlobalAlertSettings": False, "alertSettings": fields}


def by_runs(runs: int, **fields: Any) -> dict[str, Any]:
    """Alert settings that count failed runs."""
    return settings(runBasedEscalation={"failedRunThreshold": runs}, **fields)


def by_minutes(minutes: int, **fields: Any) -> dict[str, Any]:
    """Alert settings that count failing minutes."""
    escalation = {"minutesFailingThreshold": minutes}
    return settings(escalationType="TIME_BASED", timeBasedEscalation=escalation, **fields)


def an_outcome_of(letter: str, **fields: Any) -> Outcome:
    """P passes, D is degraded, F fails."""
    if letter == "F":
        failure = Failure(kind=FailureKind.CONNECT, message="The connection was refused.")
        fields.setdefault("failure", failure)
    return Outcome(**{"status": STATUSES[letter], "response_time_ms": 12.5, **fields})


@dataclass(slots=True)
class Alerting:
    """A check in a world, and what alerting makes of its results."""

    world: World
    check_id: str

    async def runs(
        self, letters: str, *, every_s: float = MINUTE_S, ticks: bool = True, **fields: Any
    ) -> None:
        """Results of these letters; the clock goes on before each, and timers run."""
        for letter in letters:
            await self.wait(every_s, ticks=ticks)
            await self.run(letter, **fields)

    async def run(self, letter: str, **fields: Any) -> None:
        """One result now; M: nobody ran it."""
        made = self.record(letter, **fields)
        await self.world.change(lambda c, now: record(c, [made], now_ms=now))

    def record(
        self,
        letter: str,
        *,
        location: str | None = None,
        outcome: Outcome | None = None,
        **fields: Any,
    ) -> Record:
        """A result on its way into the database, of a run that was due now."""
        due_ms = fields.get("scheduled_ms", self.world.time.now)
        return a_record(
            {"id": self.check_id, "checkType": "URL"},
            location_id=location or self.world.location_id,
            outcome=None if letter == "M" else outcome or an_outcome_of(letter),
            **{"started_ms": due_ms, "scheduled_ms": due_ms, **fields},
        )

    async def wait(self, seconds: float, *, ticks: bool = True) -> None:
        """Let time pass, second by second for the timers."""
        step_s = 1.0 if ticks else seconds
        left_s = seconds
        while left_s > 0:
            self.world.time.pass_s(min(step_s, left_s))
            left_s -= step_s
            if ticks:
                await self.tick()

    async def tick(self) -> int:
        """Do what is due without a result."""
        return await self.world.change(lambda c, now: alerting.act_on_timers(c, now_ms=now))

    async def alerts(self) -> Sequence[StoredAlert]:
        """All alerts of the check, oldest first."""
        wanted = AlertFilter(
            account_id=self.world.account_id, check_id=self.check_id, from_ms=0, to_ms=FOR_EVER
        )
        found = await self.world.database.read(
            lambda c: store.list_alerts(c, wanted, limit=1000, offset=0)
        )
        return found[::-1]

    async def types(self) -> list[str]:
        """The alerts, oldest first, with the number of a reminder; in brackets if nobody knows."""
        return [shorten(one) for one in await self.alerts()]

    async def replayed(self, settings: dict[str, Any], *, locations: int = 1) -> list[str]:
        """What a replay of the stored results says of the alerts until now."""
        window = (0, FOR_EVER)
        runs = await self.world.database.read(
            lambda c: results.list_runs_as_stored(c, self.check_id, window=window, limit=10_000)
        )
        given = Replay(
            runs=runs,
            policy=read_policy(settings),
            locations=locations,
            until_ms=self.world.time.now,
        )
        return [shorten_replayed(alert) for alert in replay(given)]

    async def is_stored(self) -> bool:
        """Whether anything is kept of the check's state."""
        return bool(await self.world.rows(select(alert_state)))


def shorten(stored: StoredAlert) -> str:
    """An alert as the tests write it."""
    alert = stored.alert
    return _shorten(alert.alert_type.value, alert.reminder, notified=stored.notified)


def shorten_replayed(alert: ReplayedAlert) -> str:
    """A replayed alert as the tests write it."""
    return _shorten(alert.alert_type.value, alert.reminder, notified=alert.notifies)


def _shorten(alert_type: str, reminder: int, *, notified: bool) -> str:
    name = alert_type.removeprefix("ALERT_") + (f" {reminder}" if reminder else "")
    return name if notified else f"({name})"


async def a_check(world: World, doc: dict[str, Any] | None = None, **columns: Any) -> Alerting:
    """A URL check at the first location, unless `locations` names others."""
    return Alerting(world, await world.check(doc=doc, **columns))
