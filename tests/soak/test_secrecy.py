"""What agents send is recorded and searched, and a secret among it is found."""

import gzip
import io
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.builders.archives import a_zip
from tests.builders.encodings import ENCODINGS, Encoding
from tests.faults.scene import Scene, set_scene
from tests.soak.recording import Recording
from tests.soak.search import Search, Searched
from tests.soak.secrecy import Secrecy, secrecy_of
from tests.soak.soak import body_of

SECRET = 'Kq7vTz3Ws/+"é%Lp9xHd4Rb'
KEY = "pl_" + "k" * 40
OWN = b"POST /agent/v1/results HTTP/1.1\r\nAuthorization: Bearer " + KEY.encode()


def call(body: bytes, *headers: bytes, head: bytes = OWN) -> bytes:
    """One call of an agent, as it is sent."""
    lines = (head, b"Content-Length: %d" % len(body), *headers)
    return b"\r\n".join((*lines, b"", body))


def part(content: bytes, *, whole: bytes, first: int) -> bytes:
    """A part of a file."""
    span = b"bytes %d-%d/%d" % (first, first + len(content) - 1, len(whole))
    head = OWN.replace(b"POST /agent/v1/results", b"PUT /agent/v1/artifacts/7/trace.zip")
    return call(content, b"Content-Range: " + span, head=head)


def chunked(body: bytes, *, size: int = 7) -> bytes:
    """A call whose body comes in chunks."""
    pieces = (body[at : at + size] for at in range(0, len(body), size))
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return OWN + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


def a_tar(content: bytes) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        member = tarfile.TarInfo("a.txt")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return whole.getvalue()


def searched(folder: Path, *connections: bytes, limit_bytes: int = 1 << 20) -> Searched:
    recording = Recording(folder / "said", limit_bytes=limit_bytes)
    for number, said in enumerate(connections):
        for at in range(0, len(said), 50):
            recording.hear(number, said[at : at + 50])
    return Search({"secret": SECRET}, own_key=KEY).through(recording, folder / "files")


def test_calls_that_hold_no_secret_are_clean(tmp_path: Path) -> None:
    clean = call(b'{"a":"*********"}')
    found = searched(tmp_path, clean + clean + chunked(b"a" * 99), clean[:-30], clean[:20], b"")
    assert (found.leaks, found.requests, found.hidden) == ((), 5, 2)


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda encoding: encoding.name)
def test_a_secret_is_found_in_every_encoding(tmp_path: Path, encoding: Encoding) -> None:
    assert searched(tmp_path, call(encoding.encode(f"x{SECRET}y".encode()))).leaks


@pytest.mark.parametrize(
    "said",
    [
        call(gzip.compress(SECRET.encode()), b"Content-Encoding: gzip"),
        call(gzip.compress(SECRET.encode() + b"a" * 99)[:-8], b"Content-Encoding: gzip"),
        call(b"", b"X-Note: " + SECRET.encode()),
        call(b"", head=OWN.replace(b"results", b"results?q=Kq7vTz3Ws")),
        call(b"").removesuffix(b"\r\n\r\n") + b"\r\nX: " + SECRET[-9:].encode(),
        chunked(SECRET.encode()),
        chunked(SECRET.encode())[:-20],
        call(b"") + call(b"a " + SECRET.encode()),
        call(KEY.encode()),
        call(b"", b"X-Key: " + KEY.encode()),
        call(b"", b"Proxy-Authorization: Bearer " + KEY.encode()),
    ],
    ids=[
        *("gzip", "gzip that is cut", "header", "its beginning in a path"),
        *("its end in a head that is cut", "chunks", "chunks that are cut", "second call"),
        *("own key in a body", "own key in a header", "own key for a proxy"),
    ],
)
def test_a_secret_is_found_wherever_a_call_can_hold_it(tmp_path: Path, said: bytes) -> None:
    assert searched(tmp_path, call(b"{}"), said).leaks


@pytest.mark.parametrize(
    "whole",
    [a_zip({"a.txt": SECRET.encode()}), a_tar(SECRET.encode()), b"a " * 30 + SECRET.encode()],
    ids=["zip", "tar", "text"],
)
def test_a_secret_is_found_in_a_file_that_came_in_parts(tmp_path: Path, whole: bytes) -> None:
    cut = len(whole) - 12
    first, last = part(whole[:cut], whole=whole, first=0), part(whole[cut:], whole=whole, first=cut)
    found = searched(tmp_path, first + first, last)
    assert any(leak.startswith("file 1: ") for leak in found.leaks)
    assert found.files == 1


def test_what_there_was_no_room_for_is_not_clean(tmp_path: Path) -> None:
    assert searched(tmp_path, call(b"a" * 900), limit_bytes=500).leaks


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with set_scene(tmp_path) as made:
        yield made


@pytest.fixture
async def secrecy(scene: Scene) -> AsyncIterator[Secrecy]:
    async with secrecy_of(scene, seed="short") as made:
        await made.begin(scene)
        yield made


async def test_agents_that_are_told_every_secret_send_none(scene: Scene, secrecy: Secrecy) -> None:
    agent = await scene.start_agent(**{**secrecy.environ, "QUICK_SHARE": "1"})
    for number, request in enumerate(secrecy.requests()):
        body = body_of(number, "api", request, {"maxResponseTime": 30_000})
        await scene.ask("POST", "/v1/checks/api", body)
    await scene.until(lambda: scene.ledger().final >= 2)
    ledger = scene.ledger()  # once: more results come meanwhile
    assert ledger.statuses == {"PASSED": ledger.final}
    await agent.stop()
    found = secrecy.search(scene)
    assert found.leaks == ()
    assert found.hidden >= 1
    assert found.files >= 1


async def test_a_secret_that_the_agents_do_not_know_is_found_in_what_they_send(
    scene: Scene, secrecy: Secrecy
) -> None:
    """The same way, so that the zero of the test above can be something else."""
    agent = await scene.start_agent()
    request = {"method": "GET", "url": f"{secrecy.site}/told"}
    await scene.ask("POST", "/v1/checks/api", body_of(0, "api", request, {}))
    await scene.until(lambda: scene.ledger().final >= 1)
    await agent.stop()
    assert secrecy.search(scene).leaks
