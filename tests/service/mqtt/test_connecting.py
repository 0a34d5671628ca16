"""Who may connect, and what ends a connection."""

import asyncio
import json
from pathlib import Path

import pytest

from service.http.server import websocket as limits
from service.web.cookies import SESSION_COOKIE
from tests.builders.patience import LONG_S
from tests.servers.mqtt_client import (
    PATH,
    a_client,
    bare,
    close_code,
    connect_packet,
    connected,
    packet,
    read_packet,
    text,
)
from tests.servers.public_api import PublicApi, serve_public_api
from tests.service.web.conftest import sign_in

ACCEPTED, BAD_CREDENTIALS = b"\x20\x02\x00\x00", b"\x20\x02\x00\x04"
PROTOCOL_ERROR, POLICY, UNSUPPORTED, TOO_BIG, RESTART = 1002, 1008, 1003, 1009, 1012


def hello(api: PublicApi, **more: int) -> bytes:
    secrets = api.alice.secrets
    return connect_packet(secrets.account_id, secrets.api_key, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["/mqtt", "/", "/anything/else?authenticationScheme=userApiKey"])
async def test_a_client_with_a_key_connects_at_any_path(api: PublicApi, path: str) -> None:
    secrets = api.alice.secrets
    made = a_client(api.url, secrets.account_id, secrets.api_key, path=path)
    async with connected(made, api.url) as answer:
        assert answer == "Success"


async def test_a_wrong_key_is_refused(api: PublicApi) -> None:
    made = a_client(api.url, api.alice.secrets.account_id, "cu_wrong")
    async with connected(made, api.url) as answer:
        assert answer == "Bad user name or password"
        async with asyncio.timeout(LONG_S):
            await made.gone.wait()


async def test_a_key_opens_its_own_account_only(api: PublicApi) -> None:
    bob = await api.another_user("Bob")
    made = a_client(api.url, bob.secrets.account_id, api.alice.secrets.api_key)
    async with connected(made, api.url) as answer:
        assert answer == "Not authorized"


async def test_who_has_sent_too_many_wrong_keys_is_sent_away_until_later(tmp_path: Path) -> None:
    async with serve_public_api(tmp_path, per_minute=2) as api:
        answers = []
        for _ in range(3):
            made = a_client(api.url, api.alice.secrets.account_id, "cu_wrong")
            async with connected(made, api.url) as answer:
                answers.append(answer)
        assert answers == ["Bad user name or password"] * 2 + ["Server unavailable"]


async def test_the_session_of_a_browser_opens_nothing(api: PublicApi) -> None:
    user = await sign_in(api, api.alice.secrets.api_key)
    headers = {"cookie": f"{SESSION_COOKIE}={user.session}", "origin": api.url}
    async with bare(api.http, api.url, headers=headers) as websocket:
        await websocket.send_bytes(connect_packet(api.alice.secrets.account_id, ""))
        assert await read_packet(websocket) == BAD_CREDENTIALS
        assert await close_code(websocket) == POLICY


async def test_without_the_subprotocol_the_refusal_says_what_to_offer(api: PublicApi) -> None:
    headers = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    async with api.http.get(api.url + PATH, headers=headers) as answer:
        assert answer.status == 400
        assert '"mqtt"' in json.loads(await answer.text())["message"]


async def test_a_client_that_says_nothing_is_sent_away(
    api: PublicApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.mqtt.client_connection.CONNECT_S", 0.05)
    async with bare(api.http, api.url) as websocket:
        assert await close_code(websocket) == POLICY


async def test_of_many_who_say_nothing_the_oldest_gives_way(
    api: PublicApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.mqtt.hub.MOST_UNKNOWN", 1)
    async with bare(api.http, api.url) as old, bare(api.http, api.url) as new:
        assert await close_code(old) == POLICY
        await new.send_bytes(hello(api))
        assert await read_packet(new) == ACCEPTED


async def test_a_client_that_is_silent_beyond_its_keep_alive_is_sent_away(api: PublicApi) -> None:
    async with bare(api.http, api.url) as websocket:
        await websocket.send_bytes(hello(api, keep_alive_s=1))
        assert await read_packet(websocket) == ACCEPTED
        assert await close_code(websocket) == POLICY


async def test_pings_are_answered_wherever_messages_begin_and_end(api: PublicApi) -> None:
    async with bare(api.http, api.url) as websocket:
        for byte in hello(api):
            await websocket.send_bytes(bytes([byte]))
        assert await read_packet(websocket) == ACCEPTED
        await websocket.send_bytes(b"\xc0\x00\xc0\x00\xc0")
        await websocket.send_bytes(b"\x00")
        assert [await read_packet(websocket) for _ in "abc"] == [b"\xd0\x00"] * 3


async def test_a_client_that_leaves_is_let_go(api: PublicApi) -> None:
    async with bare(api.http, api.url) as websocket:
        await websocket.send_bytes(hello(api) + b"\xe0\x00")
        assert await read_packet(websocket) == ACCEPTED
        assert await close_code(websocket) == 1000


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (packet(0x30, text("account/x") + b"hello"), PROTOCOL_ERROR),
        (b"\x82\xff\xff\x7f", PROTOCOL_ERROR),
        (b"\xf0\x00", PROTOCOL_ERROR),
        (b"\x00" * (limits.MOST_BYTES + 1), TOO_BIG),
    ],
    ids=["PUBLISH", "a long packet", "no packet", "a long message"],
)
async def test_what_a_client_must_not_send_ends_the_connection(
    api: PublicApi, sent: bytes, code: int
) -> None:
    async with bare(api.http, api.url) as websocket:
        await websocket.send_bytes(hello(api))
        await websocket.send_bytes(sent)
        assert await close_code(websocket) == code


@pytest.mark.parametrize(
    "first", [b"\xc0\x00", b"\xe0\x00", packet(0x82, b"\x00\x01\x00\x01a\x00")]
)
async def test_nothing_comes_before_connect(api: PublicApi, first: bytes) -> None:
    async with bare(api.http, api.url) as websocket:
        await websocket.send_bytes(first)
        assert await close_code(websocket) == PROTOCOL_ERROR


async def test_connect_comes_once(api: PublicApi) -> None:
    async with bare(api.http, api.url) as websocket:
        await websocket.send_bytes(hello(api) * 2)
        assert await close_code(websocket) == PROTOCOL_ERROR


async def test_text_is_no_mqtt(api: PublicApi) -> None:
    async with bare(api.http, api.url) as websocket:
        await websocket.send_str("hello")
        assert await close_code(websocket) == UNSUPPORTED


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (packet(0x10, text("MQTT") + b"\x05\x02\x00\x3c\x00" + text("c")), 1),
        (packet(0x10, text("MQTT") + b"\x04\x00\x00\x3c" + text("")), 2),
    ],
    ids=["MQTT 5", "no client id with a session to keep"],
)
async def test_what_the_standard_has_a_code_for_is_refused_with_it(
    api: PublicApi, sent: bytes, code: int
) -> None:
    async with bare(api.http, api.url) as websocket:
        await websocket.send_bytes(sent)
        assert await read_packet(websocket) == bytes([0x20, 2, 0, code])
        assert await close_code(websocket) in (PROTOCOL_ERROR, POLICY)


async def test_a_will_is_refused_as_nobody_may_publish(api: PublicApi) -> None:
    secrets = api.alice.secrets
    made = a_client(api.url, secrets.account_id, secrets.api_key)
    made.client.will_set("account/will", b"gone")
    async with connected(made, api.url) as answer:
        assert answer == "Not authorized"


async def test_a_service_that_stops_sends_its_clients_to_another_one(api: PublicApi) -> None:
    async with bare(api.http, api.url) as known, bare(api.http, api.url) as unknown:
        await known.send_bytes(hello(api))
        assert await read_packet(known) == ACCEPTED
        api.backend.mqtt.close()
        assert [await close_code(one) for one in (known, unknown)] == [RESTART] * 2
        async with bare(api.http, api.url) as late:
            assert await close_code(late) == RESTART
