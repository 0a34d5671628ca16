"""What open pages are told of."""

import asyncio
from contextlib import AbstractContextManager

import pytest
from sqlalchemy import Connection

from service.clock import Clock
from service.http.errors import TooManyError
from service.live.streams import MOST_OF_KEY, Change, LiveStream, LiveStreams
from service.sign_in import actions as sign_in
from service.sign_in.model import Principal
from tests.builders.check_bodies import check_body
from tests.builders.stored_results import a_record, failed, passed, store, store_all
from tests.servers.public_api import PEPPER, ApiUser, PublicApi

SOON_S = 10.0
A_WHILE_S = 1.5


@pytest.fixture
async def session(api: PublicApi) -> bytes:
    """A session of Alice's, by its hash."""
    return await a_session(api, api.alice)


def watch(api: PublicApi, session: bytes, *check_ids: str) -> AbstractContextManager[LiveStream]:
    account_id = api.alice.secrets.account_id
    return api.backend.live.open(
        account_id=account_id, caller_id="1", session=session, check_ids=check_ids
    )


async def a_session(api: PublicApi, user: ApiUser) -> bytes:
    caller = await api.backend.keys.caller(user.secrets.api_key)
    assert caller is not None
    who = Principal.of_caller(caller)

    def begin(connection: Connection) -> bytes:
        now_ms = api.backend.clock.now_ms(connection)
        new = sign_in.start_session(connection, PEPPER, who, now_ms=now_ms)
        visitor = sign_in.find_visitor(connection, PEPPER, new.raw, now_ms=now_ms)
        assert visitor is not None
        return visitor.session

    return await api.database.write(begin)


async def a_check(user: ApiUser) -> dict[str, str]:
    body: dict[str, str] = (await user.post("/v1/checks/url", check_body())).body
    return body


async def test_results_of_a_moment_make_one_event_and_those_of_others_none(
    api: PublicApi, session: bytes
) -> None:
    bob = await api.another_user("Bob")
    own, foreign = await a_check(api.alice), await a_check(bob)
    account_id = api.alice.secrets.account_id
    with api.backend.live.open(
        account_id=account_id, caller_id="1", session=session, check_ids=()
    ) as stream:
        place = api.alice.secrets.location_id
        await store_all(
            api,
            [a_record(one, location_id=place, outcome=passed()) for one in (own, foreign, own)],
        )

        assert await stream.next(within_s=SOON_S) == Change(frozenset({own["id"]}))

        await store(api, foreign, passed())
        assert await stream.next(within_s=A_WHILE_S) is None


async def test_an_event_says_whether_all_runs_passed(api: PublicApi, session: bytes) -> None:
    check = await a_check(api.alice)
    account_id = api.alice.secrets.account_id
    with api.backend.live.open(
        account_id=account_id, caller_id="1", session=session, check_ids=()
    ) as stream:
        await store(api, check, failed())

        change = await stream.next(within_s=SOON_S)

    assert change == Change(frozenset({check["id"]}), is_quiet=False)


async def test_a_page_of_one_check_is_not_told_of_others(api: PublicApi, session: bytes) -> None:
    own, other = await a_check(api.alice), await a_check(api.alice)
    with watch(api, session, own["id"]) as one:
        await store(api, other, passed())
        assert await one.next(within_s=A_WHILE_S) is None

        await store(api, own, passed())
        assert await one.next(within_s=SOON_S) == Change(frozenset({own["id"]}))


async def test_a_change_by_the_api_is_told(api: PublicApi, session: bytes) -> None:
    account_id = api.alice.secrets.account_id
    with api.backend.live.open(
        account_id=account_id, caller_id="1", session=session, check_ids=()
    ) as stream:
        await a_check(api.alice)

        assert await stream.next(within_s=SOON_S) == Change(None, is_quiet=False)


async def test_a_key_has_so_many_streams_and_no_more(api: PublicApi) -> None:
    live = api.backend.live
    opened = [
        live.open(account_id="a", caller_id="1", session=b"", check_ids=())
        for _ in range(MOST_OF_KEY)
    ]
    for one in opened:
        one.__enter__()

    with pytest.raises(TooManyError):  # before a response begins
        live.open(account_id="a", caller_id="1", session=b"", check_ids=())
    with live.open(account_id="a", caller_id="2", session=b"", check_ids=()):
        pass
    opened.pop().__exit__(None, None, None)
    with live.open(account_id="a", caller_id="1", session=b"", check_ids=()):
        pass


async def test_streams_end_with_the_service(api: PublicApi) -> None:
    live = api.backend.live
    with live.open(account_id="a", caller_id="1", session=b"", check_ids=()) as stream:
        live.close()

        assert await stream.next(within_s=60) is None
        assert stream.is_over


def test_an_event_about_very_many_checks_names_none() -> None:
    change = Change()
    for number in range(1000):
        change = change.merge(Change(frozenset({str(number)})))

    assert change == Change(None)


class _BrokenDatabase:
    """A database whose disk fails."""

    def listen(self, kind: object, listener: object) -> None:
        """Nothing happens here."""

    async def read(self, query: object) -> None:
        raise OSError("disk I/O error")


async def test_a_database_that_cannot_be_read_ends_no_stream_and_no_service() -> None:
    live = LiveStreams(_BrokenDatabase(), Clock())  # type: ignore[arg-type]
    running = asyncio.create_task(live.run())
    with live.open(account_id="a", caller_id="1", session=b"", check_ids=()) as stream:
        live._note_runs(["c-1"], is_quiet=False)

        assert await stream.next(within_s=SOON_S) == Change(None, is_quiet=False)

    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_page_of_one_check_is_not_told_of_hundreds_of_others(
    api: PublicApi, session: bytes
) -> None:
    own = await a_check(api.alice)
    checks = [await a_check(api.alice) for _ in range(201)]
    place = api.alice.secrets.location_id
    with watch(api, session, own["id"]) as stream:
        await store_all(api, [a_record(one, location_id=place, outcome=passed()) for one in checks])
        assert await stream.next(within_s=A_WHILE_S) is None

        await store(api, own, failed())
        assert await stream.next(within_s=SOON_S) == Change(frozenset({own["id"]}), is_quiet=False)
