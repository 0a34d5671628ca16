"""The socket that the service listens at."""

import asyncio
import socket

from service.serving import listen
from service.settings import Settings


async def test_the_end_of_an_answer_does_not_wait_for_what_came_before_to_be_acknowledged() -> None:
    taken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def note(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sock = writer.get_extra_info("socket")
        taken.set_result(bool(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
        writer.close()

    sock = listen(Settings(host="127.0.0.1", port=0))
    async with await asyncio.start_server(note, sock=sock):
        _, writer = await asyncio.open_connection(*sock.getsockname())
        is_prompt = await taken
        writer.close()
        await writer.wait_closed()
    assert is_prompt
