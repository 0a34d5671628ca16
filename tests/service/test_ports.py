"""The socket that the service listens at."""

import asyncio
import socket

from service.serving import listen
from service.settings import Settings


async def test_an_answer_is_sent_at_once_and_given_up_after_a_minute_of_silence() -> None:
    taken: asyncio.Future[tuple[int, int]] = asyncio.get_running_loop().create_future()

    def note(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sock = writer.get_extra_info("socket")
        options = socket.TCP_NODELAY, socket.TCP_USER_TIMEOUT
        is_prompt, patience_ms = (sock.getsockopt(socket.IPPROTO_TCP, one) for one in options)
        taken.set_result((is_prompt, patience_ms))
        writer.close()

    sock = listen(Settings(host="127.0.0.1", port=0))
    async with await asyncio.start_server(note, sock=sock):
        _, writer = await asyncio.open_connection(*sock.getsockname())
        is_prompt, patience_ms = await taken
        writer.close()
        await writer.wait_closed()
    assert (is_prompt, patience_ms) == (1, 60_000)
