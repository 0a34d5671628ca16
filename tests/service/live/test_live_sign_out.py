"""Who may go on reading the stream of an open page."""

import asyncio
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from service.accounts import actions as accounts
from service.accounts.model import Role
from service.sign_in import actions as sign_in
from service.users import actions as users
from service.web.cookies import SESSION_COOKIE
from tests.builders.web_users import a_user
from tests.servers.public_api import PublicApi
from tests.service.web.conftest import WebUser, sign_in_user
from tests.service.web.conftest import sign_in as sign_in_key

SOON_S = 10.0
"""Far below the five minutes after which a page opens the next stream anyway."""


async def open_stream(user: WebUser) -> aiohttp.ClientResponse:
    cookie = {"cookie": f"{SESSION_COOKIE}={user.session}"}
    answer = await user.http.get(user.url + "/live", headers=cookie)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert await answer.content.readline() == b"event: ready\n"
    return answer


async def sign_out(_api: PublicApi, user: WebUser) -> None:
    assert (await user.post("/sign-out", {})).status == 303


async def sign_out_everywhere(_api: PublicApi, user: WebUser) -> None:
    assert (await user.post("/sign-out/everywhere", {})).status == 303


async def disable(api: PublicApi, _user: WebUser) -> None:
    ann = await api.database.read(lambda c: users.find_by_email(c, "ann@example.com"))
    assert ann is not None
    await api.database.write(lambda c: sign_in.disable_user(c, ann.user.id, now_ms=1))


async def change_password(api: PublicApi, _user: WebUser) -> None:
    ann = await api.database.read(lambda c: users.find_by_email(c, "ann@example.com"))
    assert ann is not None
    await api.database.write(lambda c: sign_in.set_password(c, ann.user.id, "another"))


@pytest.mark.parametrize("end", [sign_out, sign_out_everywhere, disable, change_password])
async def test_the_stream_ends_soon_after_the_session(
    api: PublicApi, end: Callable[[PublicApi, WebUser], Awaitable[None]]
) -> None:
    await a_user(api)
    ann = await sign_in_user(api, "ann@example.com")
    other = await sign_in_key(api, api.alice.secrets.api_key)
    stream, others = await open_stream(ann), await open_stream(other)

    await end(api, ann)

    async with asyncio.timeout(SOON_S):
        assert b"event:" not in await stream.content.read()
    assert not others.content.at_eof()
    others.close()


async def test_the_stream_ends_soon_after_the_key_that_signed_in(api: PublicApi) -> None:
    colleague = await api.colleague("Bob", role=Role.READ_ONLY)
    stream = await open_stream(await sign_in_key(api, colleague.secrets.api_key))
    caller = await api.backend.keys.caller(colleague.secrets.api_key)
    assert caller is not None

    key_id, account_id = str(caller.key_id), caller.account_id
    await api.database.write(lambda c: accounts.end_key(c, key_id, account_id=account_id, now_ms=1))

    async with asyncio.timeout(SOON_S):
        assert b"event:" not in await stream.content.read()
