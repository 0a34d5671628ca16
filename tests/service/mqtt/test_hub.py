"""The clients of a process while its database is away."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from service.accounts.model import Caller
from service.db.engine import DatabaseBusyError
from service.mqtt.hub import MqttHub
from service.mqtt.subscriber import CloseReason, Subscriber
from tests.builders.patience import LONG_S


class _ReturningDatabase:
    """A database that answers nothing at first, and knows no key then."""

    def __init__(self) -> None:
        self.is_away = True
        self.asked = 0
        self.asked_twice = asyncio.Event()

    def listen(self, _kind: type, _listener: Callable[[Any], None]) -> None: ...

    async def read(self, _query: object) -> frozenset[str]:
        self.asked += 1
        if self.asked == 2:
            self.asked_twice.set()
        if self.is_away:
            raise DatabaseBusyError
        return frozenset()


async def test_clients_stay_while_the_database_is_away_and_are_looked_at_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("service.mqtt.hub.KEYS_S", 0.01)
    database = _ReturningDatabase()
    hub = MqttHub(database)  # type: ignore[arg-type]
    client = Subscriber()
    async with asyncio.timeout(LONG_S):
        with hub.admit(client):
            hub.identify(client, Caller(account_id="one", key_id="key"), client_id="c")
            looking = asyncio.create_task(hub.run())
            await database.asked_twice.wait()
            assert client.close_reason is None
            database.is_away = False
            while client.close_reason is None:
                await client.wait()
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
    assert client.close_reason is CloseReason.KEY_ENDED
