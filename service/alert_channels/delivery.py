"""Delivers queued notifications: at least once, in order per channel, channels side by side.

A channel's next notification waits until the one before it is settled. A try is counted before it
begins, so that one which ends the service cannot do so for ever. What was sent when the service
ended, and not noted yet, is sent again with the same id; while the service lives, only the note is
tried again.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

import structlog
from sqlalchemy import Connection

from service.alert_channels import store
from service.alert_channels.actions import paused_outcome
from service.alert_channels.model import (
    NotificationRow,
    NotificationsQueued,
    NotificationStatus,
)
from service.alert_channels.rules import MOST_ATTEMPTS, next_wait_ms
from service.alert_channels.sender import TAKEN, Envelope, read_envelope, send
from service.alert_channels.sending.errors import ChannelError, Fault
from service.alert_channels.sending.outgoing import SendingTools
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
_INTERRUPTED: Final = "The service ended each time that it was sent."
_UNREADABLE: Final = "The stored alert cannot be read."
_INTERNAL: Final = "The service failed to send it; its log says why."


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
            if row.attempts >= MOST_ATTEMPTS:
                await self._note(row, _Outcome(_INTERRUPTED, Fault.FINAL))
                return
            envelope, now_ms = await self._database.read(lambda c: self._read(c, row))
            if not await self._database.write(lambda c: self._begin(c, row)):
                return
            row = replace(row, attempts=row.attempts + 1)
            await self._note(row, await self._try(row, envelope, now_ms))
        except Exception:
            # A job's task: one poisoned row must not end the others.
            log.exception("alerts.delivery_failed", notification_id=row.id)
            await asyncio.sleep(_PAUSE_AFTER_FAULT_S)
        finally:
            self._busy.discard(row.channel_id)
            self._woken.set()

    @staticmethod
    def _begin(connection: Connection, row: NotificationRow) -> bool:
        """Count the try before it is made. False: the notification is settled, or gone."""
        return store.note_try(connection, row.serial, {"attempts": row.attempts + 1})

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
            return _Outcome(_INTERNAL, Fault.TEMPORARY)
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
        state = self._next_state(row, outcome, now_ms)
        store.note_try(connection, row.serial, {"outcome": outcome.sentence, **state})
        if outcome.fault is Fault.PERMANENT:
            store.fail_waiting(connection, row.channel_id, paused_outcome(outcome.sentence))

    def _next_state(self, row: NotificationRow, outcome: _Outcome, now_ms: int) -> dict[str, Any]:
        if outcome.fault is None:
            return {"status": NotificationStatus.SUCCESS.value}
        if outcome.fault in (Fault.FINAL, Fault.PERMANENT):
            return {"status": NotificationStatus.FAILURE.value}
        wait_ms = next_wait_ms(
            row.attempts, self._random.random(), demanded_s=outcome.retry_after_s
        )
        if wait_ms is not None:
            return {"next_try_ms": now_ms + wait_ms}
        is_limited = outcome.fault is Fault.RATE_LIMITED
        status = NotificationStatus.RATE_LIMITED if is_limited else NotificationStatus.FAILURE
        return {"status": status.value}
