"""Whoever sent a claim: are they still there to read the answer?"""

from starlette.types import Receive

from service.http.received import received


class HttpCaller:
    """The other end of a claim's connection, once its body has been read."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive

    def is_gone(self) -> bool:
        """Whether they have hung up, as far as is known by now."""
        message = received(self._receive)
        return message is not None and message["type"] == "http.disconnect"

    async def gone(self) -> None:
        """Returns when they have hung up."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
