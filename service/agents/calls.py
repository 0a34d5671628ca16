"""A request of an agent that was let in, as all of its routes read it."""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeVar

import msgspec
from starlette.types import Message, Receive

from contract.agent_api import AGENT_ID_HEADER
from service.agents.bodies import LIMIT_BYTES, read_message
from service.agents.keys import LocationKeys
from service.agents.model import Opened
from service.http.errors import InvalidError, LocationKeyError

MessageT = TypeVar("MessageT", bound=msgspec.Struct)

MOST_LETTERS: Final = 100
"""Of what agents call themselves and their claims."""
_AGENT_ID: Final = AGENT_ID_HEADER.encode()


class Call(NamedTuple):
    """A request of an agent that was let in."""

    headers: Mapping[bytes, bytes]
    receive: Receive
    digest: bytes
    """Of its key."""
    opened: Opened
    keys: LocationKeys

    @property
    def location_id(self) -> str:
        """The location that the agent speaks for."""
        return self.opened.location_id

    def agent_id(self) -> str:
        """What the agent calls itself.

        Raises:
            InvalidError: nothing, or much too long.
        """
        agent_id = self.headers.get(_AGENT_ID, b"").decode("latin-1")
        check_name(agent_id)
        return agent_id

    async def read(self, kind: type[MessageT], *, limit_bytes: int = LIMIT_BYTES) -> MessageT:
        """The body as one message.

        Raises:
            LocationKeyError: the key ended while the body came.
        """
        encoding = self.headers.get(b"content-encoding")
        message = await read_message(self.receive, kind, encoding=encoding, limit_bytes=limit_bytes)
        await self._ask_again()
        return message

    async def receive_while_open(self) -> Message:
        """The next part of a body that may take minutes to come.

        Raises:
            LocationKeyError: the key ended while it came.
        """
        message = await self.receive()
        await self._ask_again()
        return message

    async def _ask_again(self) -> None:
        if await self.keys.opened_with(self.digest) is None:
            raise LocationKeyError


def check_name(name: str, field: str = AGENT_ID_HEADER) -> None:
    """Refuse a name that is none, or much too long."""
    if not 0 < len(name) <= MOST_LETTERS:
        raise InvalidError(
            f'"{field}" has {len(name)} characters; use 1 to {MOST_LETTERS}.',
            keys=(field,),
            source="headers" if field == AGENT_ID_HEADER else "payload",
        )
