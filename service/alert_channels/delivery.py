"""Delivers queued notifications: at least once, in order per channel, channels side by side.

A channel's next notification waits until the one before it is settled, so that a receiver that
takes nothing gets one request at a time, however many wait; the waits grow with the tries that it
did not take, whichever notification they were for. A try is counted before it begins, so that one
which ends the service cannot do so for ever. What was sent when the service ended, and not noted
yet, is sent again with the same id; while the service lives, only the note is tried again.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Final

import structlog
from sqlalchemy import Connection

from service.alert_channels import store
from service.alert_channels.actions import paused_outcome
from service.alert_channels.model import (
    NotificationRow,
    NotificationsQueued,
    NotificationStatus,
)
from service.alert_channels.rules import LONGEST_WAIT_MS, MOST_REFUSALS, backoff_ms
from service.alert_channels.sender import TAKEN, Envelope, read_envelope, send
from service.alert_channels.sending.errors import ChannelError, Fault
from service.alert_channels.sending.outgoing import SendingTools
from service.alerting.model import Alert
from service.clock import Clock
from service.db.engine import Database, DatabaseBusyError
from service.vault.encryption import Vault

log = structlog.get_logger()

_MOST_AT_ONCE: Final = 64
"""Channels that send at the same time."""
_LONGEST_SLEEP_S: Final = 30.0
_PAUSE_AFTER_FAULT_S: Final = 5.0
_FIRST_NOTE_WAIT_S: Final = 1.0
_LONGEST_NOTE_WAIT_S: Final = 30.0
_HELD_MS: Final = 120_000
"""Longer than a try takes; whoever dies in it is followed by another process then."""
_INTERRUPTED: Final = "The service ended each time that it was sent."
_SUPERSEDED: Final = "Not sent: a later notification about the check follows this reminder."
_GIVEN_UP: Final = "Given up, because it waited for more than 24 hours."
_UNREADABLE: Final = "The stored alert cannot be read."
_INTERNAL: Final = "The service failed to send it; its log says why."
_UNSETTLED: Final = frozenset({Fault.TEMPORARY, Fault.RATE_LIMITED, Fault.REFUSED})


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of a try."""

    sentence: str
    fault: Fault | None
    """None: the receiver took it."""
    retry_after_s: float | None = None
    """None: the receiver demands no wait."""
    updated_ms: int | None = None
    """When the channel that was used had been changed last. None: never."""


class Delivery:
    """The task that empties the outbox."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        vault: Vault,
        tools: SendingTools,
        *,
        random: Random | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._vault = vault
        self._tools = tools
        self._random = random or Random()  # noqa: S311 - spreads tries, hides nothing
        self._woken = asyncio.Event()
        self._busy: set[int] = set()
        """Channels that send right now."""
        database.listen(NotificationsQueued, lambda _: self._woken.set())

    async def run(self) -> None:
        """Deliver until cancelled; what is being sent then is sent again later."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._woken.clear()
                sleep_s = await self._start_due(group)
                # Not `wait_for`: in Python 3.11 it may swallow the cancellation.
                with suppress(TimeoutError):
                    async with asyncio.timeout(sleep_s):
                        await self._woken.wait()

    async def _start_due(self, group: asyncio.TaskGroup) -> float:
        """Start what is due, as far as there is room; how long there is nothing else to do."""
        # Whoever ends while this reads is seen as it was before: its row must not be sent again.
        busy = frozenset(self._busy)
        try:
            due, next_ms = await self._database.read(self._look)
        except DatabaseBusyError as problem:
            log.warning("alerts.delivery_postponed", reason=str(problem))
            return _PAUSE_AFTER_FAULT_S
        for row in due:
            if row.channel_id not in busy and len(self._busy) < _MOST_AT_ONCE:
                self._busy.add(row.channel_id)
                group.create_task(self._deliver(row), name=f"alert {row.id}")
        return min(_LONGEST_SLEEP_S, next_ms / 1000)

    def _look(self, connection: Connection) -> tuple[tuple[NotificationRow, ...], float]:
        now_ms = self._clock.now_ms(connection)
        next_ms = store.find_next_due(connection, after_ms=now_ms)
        wait_ms = _LONGEST_SLEEP_S * 1000 if next_ms is None else next_ms - now_ms
        return store.list_due(connection, now_ms=now_ms), wait_ms

    async def _deliver(self, row: NotificationRow) -> None:
        try:
            obstacle = await self._find_obstacle(row)
            if obstacle is not None:
                await self._note(row, _Outcome(obstacle, Fault.FINAL))
                return
            envelope, now_ms = await self._database.read(lambda c: self._read(c, row))
            if not await self._database.write(lambda c: self._begin(c, row)):
                return
            row = replace(row, attempts=row.attempts + 1, refusals=row.refusals + 1)
            try:
                outcome = await self._try(row, envelope, now_ms)
            except asyncio.CancelledError:
                await self._let_go(row)
                raise
            await self._note(row, outcome)
        except Exception:
            # A job's task: one poisoned row must not end the others.
            log.exception("alerts.delivery_failed", notification_id=row.id)
            await asyncio.sleep(_PAUSE_AFTER_FAULT_S)
        finally:
            self._busy.discard(row.channel_id)
            self._woken.set()

    async def _find_obstacle(self, row: NotificationRow) -> str | None:
        """Why a notification is not sent. None: it is."""
        if row.refusals >= MOST_REFUSALS:
            return _INTERRUPTED
        is_reminder = isinstance(row.alert, Alert) and row.alert.reminder > 0
        if is_reminder and await self._database.read(lambda c: store.has_later(c, row)):
            return _SUPERSEDED
        return None

    def _begin(self, connection: Connection, row: NotificationRow) -> bool:
        """Count the try before it is made. False: the notification is settled, gone, or another's.

        While another process may share the database, the try keeps the notification to this one.
        """
        counted = {"attempts": row.attempts + 1, "refusals": row.refusals + 1}
        if connection.dialect.name != "sqlite":
            counted["next_try_ms"] = self._clock.now_ms(connection) + _HELD_MS
        return store.begin_try(connection, row, counted)

    async def _let_go(self, row: NotificationRow) -> None:
        """The service stops: whichever comes next need not wait to send it again."""
        waits = {"next_try_ms": row.next_try_ms}
        await self._database.write(lambda c: store.note_try(c, row.serial, waits))

    async def _try(self, row: NotificationRow, envelope: Envelope | None, now_ms: int) -> _Outcome:
        if envelope is None:
            return _Outcome(_UNREADABLE, Fault.FINAL)
        try:
            await send(envelope, self._tools, now_ms=now_ms)
        except ChannelError as problem:
            return _Outcome(
                problem.message,
                problem.fault,
                problem.retry_after_s,
                updated_ms=envelope.channel.updated_ms,
            )
        except Exception:
            # The last resort of a job's task: it counts as a try, so that it ends some time.
            log.exception("alerts.sending_failed", notification_id=row.id)
            return _Outcome(_INTERNAL, Fault.REFUSED)
        return _Outcome(TAKEN, None)

    def _read(self, connection: Connection, row: NotificationRow) -> tuple[Envelope | None, int]:
        """The envelope, and the time. None: there is nothing that can be sent."""
        now_ms = self._clock.now_ms(connection)
        channel = store.find_any(connection, row.channel_id)
        if channel is None or row.alert is None:
            return None, now_ms
        envelope = read_envelope(
            connection, self._vault, notification_id=row.id, channel=channel, alert=row.alert
        )
        return envelope, now_ms

    async def _note(self, row: NotificationRow, outcome: _Outcome) -> None:
        """Keep the outcome; the channel is busy until then, or else it would be sent again."""
        wait_s = _FIRST_NOTE_WAIT_S
        while True:
            try:
                await self._database.write(lambda c: self._store(c, row, outcome))
                break
            except DatabaseBusyError as problem:
                log.warning("alerts.note_postponed", notification_id=row.id, reason=str(problem))
            except Exception:
                # A job's task: whatever the reason, what was sent must not be sent again.
                log.exception("alerts.note_failed", notification_id=row.id)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_NOTE_WAIT_S)
        log.info(
            "alerts.notification_tried",
            notification_id=row.id,
            channel_id=row.channel_id,
            attempt=row.attempts,
            fault=outcome.fault.value if outcome.fault else None,
        )

    def _store(self, connection: Connection, row: NotificationRow, outcome: _Outcome) -> None:
        now_ms = self._clock.now_ms(connection)
        if outcome.fault is Fault.PERMANENT:
            pause = {"paused_reason": outcome.sentence, "paused_ms": now_ms}
            if not store.pause(connection, row.channel_id, pause, updated_ms=outcome.updated_ms):
                # It was replaced meanwhile: what it is now may do better.
                outcome = replace(outcome, fault=Fault.TEMPORARY)
        fault, known = outcome.fault, {"outcome": outcome.sentence}
        if fault in _UNSETTLED and not (fault is Fault.REFUSED and row.refusals >= MOST_REFUSALS):
            # A receiver that takes nothing says nothing against this notification.
            refusals = row.refusals if fault is Fault.REFUSED else 0
            store.note_try(connection, row.serial, {**known, "refusals": refusals})
        else:
            status = NotificationStatus.FAILURE if fault else NotificationStatus.SUCCESS
            store.note_try(connection, row.serial, {**known, "status": status.value})
        if fault is None:
            store.forget_failures(connection, row.channel_id)
        if fault is Fault.PERMANENT:
            store.fail_waiting(connection, row.channel_id, paused_outcome(outcome.sentence))
        if fault in _UNSETTLED:
            self._back_off(connection, row.channel_id, outcome, now_ms)

    def _back_off(
        self, connection: Connection, channel_id: int, outcome: _Outcome, now_ms: int
    ) -> None:
        """The receiver takes nothing: give up what is too old, and let the others wait."""
        is_limited = outcome.fault is Fault.RATE_LIMITED
        store.fail_waiting(
            connection,
            channel_id,
            f"{outcome.sentence} {_GIVEN_UP}",
            status=NotificationStatus.RATE_LIMITED if is_limited else NotificationStatus.FAILURE,
            before_ms=now_ms - LONGEST_WAIT_MS,
        )
        failures = store.count_failure(connection, channel_id)
        chance, demanded_s = self._random.random(), outcome.retry_after_s
        wait_ms = backoff_ms(failures, chance, demanded_s=demanded_s)
        store.set_next_try(connection, channel_id, now_ms + wait_ms)
