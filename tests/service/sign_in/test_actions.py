"""How long a browser stays signed in."""

from service.accounts.actions import end_key
from service.sign_in import actions
from service.sign_in.model import LINK_MS, LONGEST_SESSION_MS, SESSION_MS, Principal
from tests.servers.public_api import PEPPER, PublicApi

HOUR_MS = 3_600_000


async def _start(api: PublicApi) -> str:
    caller = await api.backend.keys.caller(api.alice.secrets.api_key)
    assert caller is not None
    session = await api.database.write(
        lambda c: actions.start_session(c, PEPPER, Principal.of_caller(caller), now_ms=0)
    )
    return session.raw


async def _is_in(api: PublicApi, raw: str, now_ms: int) -> bool:
    found = await api.database.read(lambda c: actions.find_visitor(c, PEPPER, raw, now_ms=now_ms))
    return found is not None


async def test_a_session_that_is_not_used_ends(api: PublicApi) -> None:
    raw = await _start(api)

    assert await _is_in(api, raw, SESSION_MS - 1)
    assert not await _is_in(api, raw, SESSION_MS)


async def test_a_session_that_is_used_lasts_until_its_longest_time(api: PublicApi) -> None:
    raw = await _start(api)

    for at_ms in range(0, LONGEST_SESSION_MS, SESSION_MS - HOUR_MS):
        await api.database.write(
            lambda c, at_ms=at_ms: actions.extend_session(c, PEPPER, raw, now_ms=at_ms)
        )
        assert await _is_in(api, raw, at_ms + HOUR_MS)

    assert not await _is_in(api, raw, LONGEST_SESSION_MS)


async def test_a_session_ends_with_its_key(api: PublicApi) -> None:
    raw = await _start(api)
    caller = await api.backend.keys.caller(api.alice.secrets.api_key)
    assert caller is not None

    await api.database.write(
        lambda c: end_key(c, caller.key_id, account_id=caller.account_id, now_ms=1)
    )

    assert not await _is_in(api, raw, 2)


async def test_a_link_signs_in_once(api: PublicApi) -> None:
    caller = await api.backend.keys.caller(api.alice.secrets.api_key)
    assert caller is not None
    link = await api.database.write(
        lambda c: actions.create_link(c, PEPPER, Principal.of_caller(caller), now_ms=0)
    )

    first = await api.database.write(lambda c: actions.redeem_link(c, PEPPER, link, now_ms=1))
    second = await api.database.write(lambda c: actions.redeem_link(c, PEPPER, link, now_ms=1))

    assert first is not None
    assert await _is_in(api, first.raw, 2)
    assert second is None


async def test_a_link_that_is_too_old_signs_nobody_in(api: PublicApi) -> None:
    caller = await api.backend.keys.caller(api.alice.secrets.api_key)
    assert caller is not None
    link = await api.database.write(
        lambda c: actions.create_link(c, PEPPER, Principal.of_caller(caller), now_ms=0)
    )

    assert (
        await api.database.write(lambda c: actions.redeem_link(c, PEPPER, link, now_ms=LINK_MS))
        is None
    )


async def test_what_is_good_no_longer_is_deleted(api: PublicApi) -> None:
    await _start(api)

    assert await api.database.write(lambda c: actions.forget_expired(c, now_ms=SESSION_MS - 1)) == 0
    assert await api.database.write(lambda c: actions.forget_expired(c, now_ms=SESSION_MS)) == 1


def test_a_masked_token_is_unmasked_and_nothing_else_is_one() -> None:
    token = "ab" * 32

    assert actions.unmask(actions.mask(token)) == token
    assert actions.mask(token) != actions.mask(token)
    assert actions.unmask("no token") == ""
