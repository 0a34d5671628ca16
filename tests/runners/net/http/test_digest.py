"""Digest authentication (RFC 7616): a challenge is answered, and the password never sent."""

import asyncio
import hashlib
import re

import pytest

from contract.requests import AuthScheme, BasicAuth, BodyType, HttpMethod, KeyValue
from runners.net.egress.rules import EgressRules
from runners.net.http.client import HttpEngine
from runners.net.http.exchange import HttpExchange
from tests.builders.patience import LONG_S
from tests.builders.specs import an_http_request
from tests.servers.http_origin import Asked, Page, http_origin, redirect, reply

_NONCE = "a1b2c3"


def _hash(algorithm: str, *parts: str) -> str:
    return hashlib.new(algorithm, ":".join(parts).encode()).hexdigest()


def wants_digest(user: str, password: str, *, algorithm: str = "SHA-256") -> Page:
    name = {"MD5": "md5", "SHA-256": "sha256"}[algorithm]
    challenge = f'Digest realm="shop", nonce="{_NONCE}", qop="auth", algorithm={algorithm}'

    async def page(asked: Asked, writer: asyncio.StreamWriter) -> None:
        given = dict(re.findall(r'(\w+)="?([^",]+)"?', asked.one("authorization") or ""))
        secret = _hash(name, user, "shop", password)
        resource = _hash(name, asked.method, asked.target)
        nonces = (_NONCE, given.get("nc", ""), given.get("cnonce", ""), "auth")
        if given.get("response") == _hash(name, secret, *nonces, resource):
            writer.write(reply(b"in"))
        else:
            writer.write(reply(b"out", status="401 Unauthorized", www_authenticate=challenge))

    return page


async def exchanged(url: str, **request: object) -> HttpExchange:
    auth = BasicAuth(username="probe", password="s3cr3t:pä")
    async with HttpEngine(EgressRules()) as engine:
        scheme = AuthScheme.DIGEST
        asked = an_http_request(url, **{"basic_auth": auth, "auth_scheme": scheme, **request})
        return await engine.exchange(asked, timeout_s=LONG_S)


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256"])
async def test_a_challenge_is_answered_with_the_credentials(algorithm: str) -> None:
    page = wants_digest("probe", "s3cr3t:pä", algorithm=algorithm)
    async with http_origin(page) as origin:
        seen = await exchanged(origin.url("/a?b=c"))
    assert seen.failure is None
    assert seen.answer is not None
    assert (seen.answer.head.status_code, seen.answer.body) == (200, b"in")
    assert origin.asked[0].one("authorization") is None
    assert all("s3cr3t" not in str(one.headers) for one in origin.asked)


async def test_user_and_password_of_the_url_answer_a_challenge_too() -> None:
    async with http_origin(wants_digest("probe", "s3cr3t:pä")) as origin:
        url = origin.url().replace("http://", "http://probe:s3cr3t%3Ap%C3%A4@")
        seen = await exchanged(url, basic_auth=None)
    assert seen.answer is not None
    assert seen.answer.body == b"in"


async def test_wrong_credentials_end_with_the_servers_refusal() -> None:
    async with http_origin(wants_digest("probe", "another")) as origin:
        seen = await exchanged(origin.url())
    assert seen.answer is not None
    assert seen.answer.head.status_code == 401


async def test_the_body_is_sent_with_the_answer_to_the_challenge() -> None:
    async with http_origin(wants_digest("probe", "s3cr3t:pä")) as origin:
        seen = await exchanged(
            origin.url(), method=HttpMethod.POST, body="order", body_type=BodyType.RAW
        )
    assert seen.answer is not None
    assert seen.answer.body == b"in"
    assert [one.body for one in origin.asked] == [b"", b"order"]


async def test_another_origin_gets_no_answer_to_its_challenge() -> None:
    async with (
        http_origin(wants_digest("probe", "s3cr3t:pä")) as other,
        http_origin(redirect(other.url())) as origin,
    ):
        seen = await exchanged(origin.url())
    assert seen.answer is not None
    assert seen.answer.head.status_code == 401
    assert all(one.one("authorization") is None for one in other.asked)


async def test_a_request_to_upgrade_is_judged_by_the_answer_after_the_challenge() -> None:
    upgrade = (KeyValue(key="Upgrade", value="websocket"),)
    async with http_origin(wants_digest("probe", "s3cr3t:pä")) as origin:
        seen = await exchanged(origin.url(), headers=upgrade)
    assert seen.answer is not None
    assert (seen.answer.head.status_code, seen.answer.body) == (200, b"in")
