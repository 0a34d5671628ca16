"""A TCP target: accepts on the given port and sends back what it gets."""

import asyncio
import sys

import uvloop


class Echo(asyncio.Protocol):
    """Sends back what it gets."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Send it back."""
        self._transport.write(data)  # type: ignore[attr-defined]  # a stream's transport has it


async def serve(port: int) -> None:
    """Until the process is ended."""
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", port, backlog=8192)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
