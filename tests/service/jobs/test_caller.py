import asyncio

from starlette.types import Message

from service.jobs.long_poll import Caller


class Connection:
    """The receiving end of a connection, as a server shows it once the body has been read."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    async def receive(self) -> Message:
        await self.ended.wait()
        return {"type": "http.disconnect"}


def caller_on(connection: Connection) -> Caller:
    return Caller(connection.receive)


async def test_a_caller_that_listens_is_not_gone_however_often_one_asks() -> None:
    caller = caller_on(Connection())
    assert not caller.is_gone()
    assert not caller.is_gone()


async def test_a_caller_that_hung_up_is_gone() -> None:
    connection = Connection()
    caller = caller_on(connection)
    connection.ended.set()
    assert caller.is_gone()


async def test_asking_too_early_takes_no_message_away() -> None:
    messages: asyncio.Queue[Message] = asyncio.Queue()
    caller = Caller(messages.get)
    assert not caller.is_gone()
    messages.put_nowait({"type": "http.disconnect"})
    assert caller.is_gone()


async def test_whoever_waits_for_a_caller_to_go_is_told() -> None:
    connection = Connection()
    caller = caller_on(connection)
    watch = asyncio.create_task(caller.wait_for_disconnect())
    await asyncio.sleep(0)
    assert not caller.is_gone()
    connection.ended.set()
    await watch
    assert caller.is_gone()
