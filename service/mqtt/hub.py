"""The clients that are connected to this process, and who is told of what.

Whatever happens to a run of a test session is announced to every process; each passes it to its own
clients that have subscribed to the suite, and to nobody else.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from service.accounts import actions as accounts
from service.accounts.model import Caller
from service.db.engine import Database, NoticesLost
from service.mqtt.subscriber import CloseReason, Subscriber
from service.sessions.model import RunProgressed

log = structlog.get_logger()

MOST: Final = 2_000
"""How many clients may be connected at a time."""
MOST_OF_ACCOUNT: Final = 100
"""How many of them may be of one account."""
MOST_UNKNOWN: Final = 256
"""How many may be connected that have not said yet who they are; more take the oldest's place."""
KEYS_S: Final = 3.0
"""How often it is asked whether the keys of those who are connected are still good."""


class MqttHub:
    """All clients of this process; the event loop's alone."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._unknown: dict[Subscriber, None] = {}
        """Those who have not said who they are, the longest waiting first."""
        self._known: dict[Subscriber, Caller] = {}
        """For whom the others speak."""
        self._connected = asyncio.Event()
        """Set while anybody is known."""
        self._is_closed = False
        database.listen(RunProgressed, self._pass_on)
        database.listen(NoticesLost, self._look)

    @contextmanager
    def admit(self, subscriber: Subscriber) -> Iterator[None]:
        """Let a client stay for as long as the block lasts, within the limit for the unknown."""
        if len(self._unknown) >= MOST_UNKNOWN:
            next(iter(self._unknown)).close(CloseReason.GIVE_WAY)
        self._unknown[subscriber] = None
        if self._is_closed:
            subscriber.close(CloseReason.SHUTDOWN)
        try:
            yield
        finally:
            self._unknown.pop(subscriber, None)
            self._known.pop(subscriber, None)

    def has_room(self, caller: Caller) -> bool:
        """Whether one more client of the account may be connected."""
        own = sum(one.account_id == caller.account_id for one in self._known.values())
        return len(self._known) < MOST and own < MOST_OF_ACCOUNT

    def identify(self, subscriber: Subscriber, caller: Caller, *, client_id: str) -> None:
        """Say for whom a client speaks, which ends an older connection of the same client.

        Section 3.1.4 of MQTT 3.1.1 wants that; client ids are an account's own.
        """
        for other, owner in self._known.items():
            if client_id and (owner.account_id, other.client_id) == (caller.account_id, client_id):
                other.close(CloseReason.TAKEN_OVER)
        subscriber.client_id, subscriber.caller = client_id, caller
        self._unknown.pop(subscriber, None)
        self._known[subscriber] = caller
        self._connected.set()

    async def run(self) -> None:
        """End the connections of keys that have ended, whichever process ended them."""
        while True:
            await self._connected.wait()
            try:
                await self._close_ended()
            except Exception:  # a database that is away must not end the service
                log.exception("mqtt.keys_unknown")
            if not self._known:
                self._connected.clear()
                continue
            await asyncio.sleep(KEYS_S)

    def close(self) -> None:
        """End all connections: the service is shutting down."""
        self._is_closed = True
        for subscriber in (*self._unknown, *self._known):
            subscriber.close(CloseReason.SHUTDOWN)

    async def _close_ended(self) -> None:
        key_ids = {caller.key_id for caller in self._known.values() if caller.key_id}
        if not key_ids:
            return
        good = await self._database.read(lambda c: accounts.list_good_keys(c, key_ids))
        for subscriber, caller in self._known.items():
            if caller.key_id not in good and caller.key_id in key_ids:
                subscriber.close(CloseReason.KEY_ENDED)

    def _pass_on(self, progress: RunProgressed) -> None:
        for subscriber in self._known:
            subscriber.tell(progress)

    def _look(self, _lost: NoticesLost) -> None:
        for subscriber in self._known:
            subscriber.look_again()
