"""Eclipse Paho's client of MQTT over WebSocket, and packets over a bare WebSocket."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from paho.mqtt.client import Client, MQTTMessage, MQTTProtocolVersion
from paho.mqtt.enums import CallbackAPIVersion

from tests.builders.patience import LONG_S

PATH = "/mqtt?authenticationScheme=userApiKey"


@dataclass(frozen=True, slots=True)
class Received:
    topic: str
    body: Any


@dataclass(slots=True)
class Subscribed:
    """A client of Paho, and what it was told; its own thread talks to the service."""

    client: Client
    loop: asyncio.AbstractEventLoop
    connected: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    """The service's answers to CONNECT."""
    granted: asyncio.Queue[list[str]] = field(default_factory=asyncio.Queue)
    """Its answers to SUBSCRIBE."""
    received: asyncio.Queue[Received] = field(default_factory=asyncio.Queue)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def subscribe(self, *filters: str) -> list[str]:
        """What is granted."""
        self.client.subscribe([(one, 0) for one in filters])
        async with asyncio.timeout(LONG_S):
            return await self.granted.get()

    async def next(self) -> Received:
        async with asyncio.timeout(LONG_S):
            return await self.received.get()


def a_client(url: str, user: str, key: str, *, client_id: str = "", path: str = PATH) -> Subscribed:
    client = Client(
        CallbackAPIVersion.VERSION2,
        client_id=client_id,
        transport="websockets",
        protocol=MQTTProtocolVersion.MQTTv311,
        reconnect_on_failure=False,
    )
    client.username_pw_set(user, key)
    client.ws_set_options(path=path)
    made = Subscribed(client, asyncio.get_running_loop())
    call = made.loop.call_soon_threadsafe

    def on_message(_client: Client, _data: Any, message: MQTTMessage) -> None:
        call(made.received.put_nowait, Received(message.topic, json.loads(message.payload)))

    client.on_connect = lambda _c, _d, _f, code, _p: call(made.connected.put_nowait, str(code))
    client.on_subscribe = lambda _c, _d, _m, codes, _p: call(
        made.granted.put_nowait, [str(code) for code in codes]
    )
    client.on_disconnect = lambda *_: call(made.gone.set)
    client.on_message = on_message
    return made


@asynccontextmanager
async def connected(made: Subscribed, url: str) -> AsyncIterator[str]:
    """Connect for as long as the block lasts; how the service answers CONNECT."""
    address = urlsplit(url)
    await asyncio.to_thread(made.client.connect, str(address.hostname), address.port or 0)
    made.client.loop_start()
    try:
        async with asyncio.timeout(LONG_S):
            answer = await made.connected.get()
        yield answer
    finally:
        made.client.disconnect()
        await asyncio.to_thread(made.client.loop_stop)
        made.client._reset_sockets()  # it keeps a pair of its own until it is collected


@asynccontextmanager
async def bare(
    http: aiohttp.ClientSession, url: str, **more: Any
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """A WebSocket on which a test writes bytes of its own."""
    async with http.ws_connect(url + PATH, protocols=("mqtt",), **more) as websocket:
        yield websocket


async def read_packet(websocket: aiohttp.ClientWebSocketResponse) -> bytes:
    async with asyncio.timeout(LONG_S):
        return await websocket.receive_bytes()


async def close_code(websocket: aiohttp.ClientWebSocketResponse) -> int | None:
    """The code with which the service closes, whatever it sends before."""
    async with asyncio.timeout(LONG_S):
        while not (await websocket.receive()).type.name.startswith("CLOS"):
            pass
    return websocket.close_code


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return len(data).to_bytes(2, "big") + data


def packet(first: int, rest: bytes = b"") -> bytes:
    """A packet of fewer than 16 KiB, by its first byte and what follows the length."""
    length = len(rest)
    head = bytes([length]) if length < 128 else bytes([length & 127 | 128, length >> 7])
    return bytes([first]) + head + rest


def connect_packet(user: str, key: str, *, keep_alive_s: int = 60, client_id: str = "c") -> bytes:
    head = text("MQTT") + bytes([4, 0xC2]) + keep_alive_s.to_bytes(2, "big")
    return packet(0x10, head + text(client_id) + text(user) + text(key))
