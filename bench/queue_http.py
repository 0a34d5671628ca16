"""A lean HTTP client on one kept connection: what it costs is not what is measured."""

import asyncio
from typing import Any, cast

import msgspec

KEY = "pl_benchmark_key_0123456789abcdefghij"
UPTIME_TYPES = ("URL", "API", "TCP", "DNS", "ICMP")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Door(asyncio.Protocol):
    """One connection of one agent; one request at a time."""

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        self._headers = (
            f" HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {KEY}\r\n"
            f"x-agent-id: {agent_id}\r\ncontent-type: application/json\r\ncontent-length: "
        ).encode()
        self._transport: asyncio.Transport | None = None
        self._read = b""
        self._answer: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """What asyncio calls."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop has its own class

    def connection_lost(self, exc: Exception | None) -> None:
        """What asyncio calls."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionError("the service hung up"))

    def data_received(self, data: bytes) -> None:
        """What asyncio calls: whole answers end the wait."""
        self._read += data
        head, found, body = self._read.partition(b"\r\n\r\n")
        if not found or self._answer is None:
            return
        _, _, length = head.lower().partition(b"content-length: ")
        if len(body) < int(length.partition(b"\r\n")[0]):
            return
        self._read = b""
        if head.startswith(b"HTTP/1.1 200"):
            self._answer.set_result(body)
        else:
            self._answer.set_exception(RuntimeError(f"{head!r} {body!r}"))

    async def post(self, path: str, message: object) -> Any:
        """Send a message, and read its answer."""
        return _decode(await self.post_raw(path, _encode(message)))

    async def post_raw(self, path: str, body: bytes) -> bytes:
        """Send a message that is written already; its answer unread."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        length = str(len(body)).encode()
        request = b"POST " + path.encode() + self._headers + length + b"\r\n\r\n" + body
        self._transport.write(request)
        return await self._answer

    async def say_hello(self) -> None:
        """Let the service know the agent."""
        hello = {
            "agentId": self.agent_id,
            "version": "9.9.9",
            "platform": "linux-x86_64",
            "checkTypes": UPTIME_TYPES,
            "slots": {"uptime": 256},
        }
        await self.post("/agent/v1/hello", hello)

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()


async def open_door(port: int, agent_id: str) -> Door:
    """Connect, and say hello."""
    loop = asyncio.get_running_loop()
    _, door = await loop.create_connection(lambda: Door(agent_id), "127.0.0.1", port)
    await door.say_hello()
    return door


def a_claim(claim_id: str, slots: int, *, wait_s: float) -> dict[str, object]:
    """A claim of the uptime lane."""
    return {
        "claimId": claim_id,
        "slots": {"uptime": slots},
        "checkTypes": UPTIME_TYPES,
        "waitSeconds": wait_s,
    }
