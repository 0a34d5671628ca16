"""Clients that have subscribed to a suite are told what happens to its runs, and nobody else is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from contract.result import Status
from service.accounts import actions as accounts
from service.db.engine import NoticesLost
from service.jobs.settle import expire_jobs
from service.sessions import store
from tests.builders.engines import ON_POSTGRESQL
from tests.builders.followed_tests import SUITE, start_test
from tests.builders.patience import LONG_S
from tests.builders.world import World, a_result
from tests.servers.mqtt_client import Received, Subscribed, a_client, connected
from tests.servers.public_api import ApiUser, PublicApi, serve_public_api

GRANTED, REFUSED = ["Granted QoS 0"], ["Unspecified error"]


@dataclass(slots=True)
class Shop:
    """An account whose test sessions somebody follows."""

    api: PublicApi
    world: World
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def client(self, user: ApiUser | None = None, *, client_id: str = "") -> Subscribed:
        who = user or self.api.alice
        made = a_client(
            self.api.url, who.secrets.account_id, who.secrets.api_key, client_id=client_id
        )
        answer = await self.stack.enter_async_context(connected(made, self.api.url))
        assert answer == "Success"
        return made

    async def follower(self) -> Subscribed:
        made = await self.client()
        assert await made.subscribe(self.filter) == GRANTED
        return made

    @property
    def filter(self) -> str:
        return filter_of(self.world.account_id)

    async def sequence_of(self, test_id: str) -> str:
        [session] = await self.api.database.read(lambda c: store.list_members(c, test_id))
        return session.id


def filter_of(account_id: str, suite_id: str = SUITE) -> str:
    return f"account/{account_id}/ad-hoc-check-results/{suite_id}/+/+/+"


def a_shop(api: PublicApi) -> Shop:
    secrets = api.alice.secrets
    return Shop(api, World(api.database, secrets.account_id, secrets.location_id))


@pytest.fixture
async def shop(api: PublicApi) -> AsyncIterator[Shop]:
    made = a_shop(api)
    async with made.stack:
        yield made


def subtopic(received: Received) -> str:
    return received.topic.rpartition("/")[2]


async def test_a_run_is_told_when_it_begins_and_when_it_has_a_result(shop: Shop) -> None:
    follower = await shop.follower()
    test_id = await start_test(shop.world, "home")
    [job] = await shop.world.claim()
    started = await follower.next()
    await shop.world.submit(a_result(job, Status.FAILED))
    result = await follower.next()

    sequence = await shop.sequence_of(test_id)
    place = f"{shop.filter.removesuffix('/+/+/+')}/{sequence}/home-run"
    assert started.topic == f"{place}/run-start"
    assert result.topic == f"{place}/result"
    assert result.body["resultType"] == "FINAL"
    assert result.body["result"]["id"] == result.body["testResultId"]
    assert result.body["result"]["hasFailures"] is True
    assert result.body["result"]["name"] == "home"
    assert "assets" not in result.body["result"]


async def test_a_run_that_nobody_takes_is_told_as_an_error_with_a_sentence(shop: Shop) -> None:
    follower = await shop.follower()
    await start_test(shop.world, "home")
    shop.world.time.pass_s(361)
    await shop.world.change(lambda c, now: expire_jobs(c, watched_since_ms=0, now_ms=now))
    told = await follower.next()
    assert subtopic(told) == "error"
    assert told.body.startswith("No agent")


async def test_who_subscribes_again_later_is_told_what_happened_meanwhile(shop: Shop) -> None:
    await start_test(shop.world, "home")
    [job] = await shop.world.claim()
    await shop.world.submit(a_result(job))
    follower = await shop.follower()
    assert [subtopic(await follower.next()) for _ in "ab"] == ["run-start", "result"]


async def test_lost_notices_lose_no_result_and_tell_none_twice(shop: Shop) -> None:
    follower = await shop.follower()
    hub = shop.api.backend.mqtt
    await start_test(shop.world, "home", "cart")
    one, two = await shop.world.claim()
    told = [await follower.next() for _ in "ab"]
    known, hub._known = hub._known, {}  # a notice that reaches nobody
    await shop.world.submit(a_result(one))
    hub._known = known
    hub._look(NoticesLost())
    told.append(await follower.next())
    hub._look(NoticesLost())
    await shop.world.submit(a_result(two))
    told.append(await follower.next())
    assert [subtopic(one) for one in told] == ["run-start", "run-start", "result", "result"]
    assert len({one.topic for one in told}) == 4


async def test_only_topics_that_a_filter_matches_are_told(shop: Shop) -> None:
    client = await shop.client()
    filters = [shop.filter.replace("/+/+/+", end) for end in ("/+/+/result", "/+/cart-run/#")]
    assert await client.subscribe(*filters) == GRANTED * 2
    await start_test(shop.world, "home", "cart")
    one, two = await shop.world.claim()
    await shop.world.submit(a_result(one))
    await shop.world.submit(a_result(two))
    told = [await client.next() for _ in range(3)]
    assert sorted("/".join(one.topic.split("/")[-2:]) for one in told) == [
        "cart-run/result",
        "cart-run/run-start",
        "home-run/result",
    ]


async def test_who_has_unsubscribed_is_told_nothing_more(shop: Shop) -> None:
    one, other = await shop.follower(), await shop.follower()
    left = asyncio.Event()
    one.client.on_unsubscribe = lambda *_: one.loop.call_soon_threadsafe(left.set)
    one.client.unsubscribe(shop.filter)
    async with asyncio.timeout(LONG_S):
        await left.wait()
    await start_test(shop.world, "home")
    [job] = await shop.world.claim()
    await shop.world.submit(a_result(job))
    assert [subtopic(await other.next()) for _ in "ab"] == ["run-start", "result"]
    assert one.received.empty()


async def test_another_account_can_subscribe_to_none_of_it(shop: Shop) -> None:
    bob = await shop.api.another_user("Bob")
    client, follower = await shop.client(bob), await shop.follower()
    assert await client.subscribe(shop.filter) == REFUSED
    own = filter_of(bob.secrets.account_id)
    assert await client.subscribe(own) == GRANTED
    await start_test(shop.world, "home")
    await shop.world.claim()
    await follower.next()
    assert client.received.empty()


@pytest.mark.parametrize(
    "topic_filter",
    [
        "#",
        "account/+/ad-hoc-check-results/suite-1/+/+/+",
        "account/{own}/#",
        "account/{own}/ad-hoc-check-results/+/+/+/+",
        "account/{own}/ad-hoc-check-results/suite-1",
        "account/{own}/other/suite-1/+/+/+",
        "account/{own}/ad-hoc-check-results/" + "s" * 600 + "/+/+/+",
    ],
)
async def test_a_filter_that_names_no_suite_of_the_account_is_refused(
    shop: Shop, topic_filter: str
) -> None:
    client = await shop.client()
    assert await client.subscribe(topic_filter.format(own=shop.world.account_id)) == REFUSED


async def test_a_client_has_a_limited_number_of_filters(shop: Shop) -> None:
    client = await shop.client()
    many = [filter_of(shop.world.account_id, f"suite-{number}") for number in range(21)]
    assert await client.subscribe(*many) == GRANTED * 20 + REFUSED


async def test_a_connection_ends_soon_after_its_key(shop: Shop) -> None:
    colleague = await shop.api.colleague("Bob")
    client, other = await shop.client(colleague), await shop.client()
    caller = await shop.api.backend.keys.caller(colleague.secrets.api_key)
    assert caller is not None

    def end(connection: Connection) -> Any:
        key_id, account_id = str(caller.key_id), caller.account_id
        return accounts.end_key(connection, key_id, account_id=account_id, now_ms=1)

    await shop.api.database.write(end)
    async with asyncio.timeout(LONG_S):
        await client.gone.wait()
    assert not other.gone.is_set()


async def test_a_client_that_connects_again_takes_the_place_of_its_older_connection(
    shop: Shop,
) -> None:
    older = await shop.client(client_id="cli")
    bob = await shop.api.another_user("Bob")
    foreign = await shop.client(bob, client_id="cli")
    assert not older.gone.is_set()
    newer = await shop.client(client_id="cli")
    async with asyncio.timeout(LONG_S):
        await older.gone.wait()
    assert not newer.gone.is_set()
    assert not foreign.gone.is_set()


async def test_an_account_has_a_limited_number_of_clients(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.mqtt.hub.MOST_OF_ACCOUNT", 1)
    await shop.client()
    secrets = shop.api.alice.secrets
    refused = a_client(shop.api.url, secrets.account_id, secrets.api_key)
    async with connected(refused, shop.api.url) as answer:
        assert answer == "Server unavailable"
    await shop.client(await shop.api.another_user("Bob"))


async def test_more_events_than_a_client_has_room_for_are_read_anew(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.mqtt.subscriber.MOST_PENDING", 1)
    follower = await shop.follower()
    names = [f"page-{number}" for number in range(5)]
    await start_test(shop.world, *names)
    jobs = await shop.world.claim()
    await shop.world.submit(*map(a_result, jobs))
    results = set()
    while len(results) < len(names):
        told = await follower.next()
        if subtopic(told) == "result":
            assert told.topic not in results
            results.add(told.topic)


@ON_POSTGRESQL
async def test_a_client_is_told_what_happens_at_another_service(
    tmp_path: Path, postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.db.postgresql_notices._POLL_S", 10 * LONG_S)
    (tmp_path / "two").mkdir()
    async with serve_public_api(tmp_path, postgresql_url=postgresql_url) as one:
        shop = a_shop(one)
        async with (
            shop.stack,
            serve_public_api(
                tmp_path / "two", postgresql_url=postgresql_url, secrets=one.alice.secrets
            ) as two,
        ):
            elsewhere = a_shop(two)
            async with elsewhere.stack:
                follower = await elsewhere.follower()
                await start_test(shop.world, "home")
                [job] = await shop.world.claim()
                await shop.world.submit(a_result(job))
                assert [subtopic(await follower.next()) for _ in "ab"] == ["run-start", "result"]
