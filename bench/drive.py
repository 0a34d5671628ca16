"""Asks blackbox_exporter for probes: so many at once, for some seconds, over kept connections.

Arguments: its port, the path to ask for, the number at once, seconds. Prints the tally as JSON.
"""

import asyncio
import re
import sys
import time

import msgspec
import uvloop

SUCCESS = re.compile(rb"^probe_success 1$", re.MULTILINE)
DURATION = re.compile(rb"^probe_duration_seconds (\S+)$", re.MULTILINE)
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class Tally(msgspec.Struct):
    """What came back."""

    done: int = 0
    wrong: int = 0
    example: str = ""
    times_ms: list[float] = []


async def ask(port: int, request: bytes, ends_at: float, tally: Tally) -> None:
    """One connection's share."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < ends_at:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = LENGTH.search(head)
        body = await (reader.readexactly(int(length[1])) if length else chunks(reader))
        note(body, tally)
    writer.close()


async def chunks(reader: asyncio.StreamReader) -> bytes:
    """A body in chunks, as longer answers come."""
    body = b""
    while size := int(await reader.readline(), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readline()
    return body


def note(body: bytes, tally: Tally) -> None:
    """Count one probe."""
    tally.done += 1
    duration = DURATION.search(body)
    if SUCCESS.search(body) is None or duration is None:
        tally.wrong += 1
        tally.example = body.decode(errors="replace")
    else:
        tally.times_ms.append(float(duration[1]) * 1000)


async def drive(port: int, path: str, at_once: int, for_s: float) -> Tally:
    """The whole round."""
    request = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n".encode()
    ends_at = time.monotonic() + for_s
    tally = Tally()
    await asyncio.gather(*(ask(port, request, ends_at, tally) for _ in range(at_once)))
    return tally


if __name__ == "__main__":
    found = uvloop.run(drive(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))
    sys.stdout.buffer.write(msgspec.json.encode(found))
