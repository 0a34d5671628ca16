"""Whoever sent a claim: are they still there to read the answer?"""

from starlette.requests import Request


class HttpCaller:
    """The other end of a claim's connection, once its body has been read."""

    def __init__(self, request: Request) -> None:
        self._receive = request.receive

    def is_gone(self) -> bool:
        """Whether they have hung up, as far as is known by now.

        One step of the question, without a task for it, which would cost a claim that is answered
        at once 4 µs more.
        """
        question = self._receive().__await__()
        try:
            next(question)
        except StopIteration as answered:
            return bool(answered.value["type"] == "http.disconnect")
        finally:
            question.close()
        return False

    async def gone(self) -> None:
        """Returns when they have hung up."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
