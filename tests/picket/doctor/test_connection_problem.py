"""What stands in the way, in words that a person can act on: real sockets, real certificates."""

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import aiohttp
import pytest
import trustme
from aiohttp.client_reqrep import ConnectionKey
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from agent.settings import read_settings
from picket.doctor.connection import check_service, explain_connection_problem
from picket.doctor.findings import Finding, Health

KEY = "pl_" + "k" * 40


@asynccontextmanager
async def listening(tls: ssl.SSLContext | None = None, answer: bytes = b"") -> AsyncIterator[int]:
    """Says `answer` to whatever comes, and closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def found_at(url: str, **environ: str) -> Finding:
    settings = read_settings({"API_KEY": KEY, "SERVICE_URL": url, **environ})
    found = (await check_service(settings, None))[0]
    assert found.health is Health.FAIL
    assert "Errno" not in found.line()
    assert KEY not in found.line()
    return found


def server_side(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


def self_signed(directory: Path, *, ended: bool = False) -> tuple[ssl.SSLContext, Path]:
    """A certificate that vouches for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "picket")])
    begin = datetime.now(UTC) - timedelta(days=30)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begin)
        .not_valid_after(begin + timedelta(days=10 if ended else 60))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (directory / "key.pem").write_bytes(private)
    (directory / "certificate.pem").write_bytes(certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "certificate.pem", directory / "key.pem")
    return context, directory / "certificate.pem"


async def test_a_self_signed_service_is_told_as_such(tmp_path: Path) -> None:
    context, _ = self_signed(tmp_path)
    async with listening(context) as port:
        found = await found_at(f"https://127.0.0.1:{port}")
    assert found.seen.endswith(": its certificate cannot be trusted: it is self-signed")
    assert "EXTRA_CA_CERTS" in found.fix


async def test_a_certificate_of_an_unknown_authority_is_told_as_such() -> None:
    leaf = trustme.CA().issue_cert("127.0.0.1")
    async with listening(server_side(leaf)) as port:
        found = await found_at(f"https://127.0.0.1:{port}")
    assert found.seen.endswith("no authority that this host trusts signed it")
    assert "its authority in EXTRA_CA_CERTS" in found.fix


async def test_a_certificate_for_another_host_asks_for_another_address(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    async with listening(server_side(authority.issue_cert("other.test"))) as port:
        extra = str(tmp_path / "authority.pem")
        found = await found_at(f"https://127.0.0.1:{port}", EXTRA_CA_CERTS=extra)
    assert "SERVICE_URL that the certificate is valid for" in found.fix


async def test_a_certificate_that_is_over_wants_to_be_renewed(tmp_path: Path) -> None:
    context, certificate = self_signed(tmp_path, ended=True)
    async with listening(context) as port:
        found = await found_at(f"https://127.0.0.1:{port}", EXTRA_CA_CERTS=str(certificate))
    assert found.seen.endswith("a certificate of its chain has expired")
    assert found.fix.startswith("renew the certificate")


async def test_tls_with_a_service_that_has_none_is_told_as_such() -> None:
    async with listening(answer=b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        found = await found_at(f"https://127.0.0.1:{port}")
    assert "did not agree on TLS: it does not speak TLS on this port" in found.seen
    assert "http://" in found.fix


async def test_a_service_that_hangs_up_on_plain_http_may_speak_tls() -> None:
    async with listening() as port:
        found = await found_at(f"http://127.0.0.1:{port}")
    assert found.seen.endswith(": it closed the connection without an answer")
    assert "https://" in found.fix


def test_a_name_that_nobody_knows_is_told_by_name() -> None:
    key = ConnectionKey("picket.invalid", 80, False, True, None, None, None)  # noqa: FBT003 - theirs
    problem = aiohttp.ClientConnectorDNSError(key, OSError(None, "Domain name not found"))
    words = "the name picket.invalid cannot be looked up"
    assert explain_connection_problem(problem, "http://picket.invalid").seen == words


async def test_another_server_is_told_by_its_answer() -> None:
    answer = b"HTTP/1.1 418 I'm a Teapot\r\ncontent-length: 0\r\n\r\n"
    async with listening(answer=answer) as port:
        found = await found_at(f"http://127.0.0.1:{port}")
    assert "answered 418 (I'm a Teapot)" in found.seen


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (TimeoutError(), "no answer in time"),
        (socket.gaierror(-2, "Name or service not known"), "its name cannot be looked up"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "no route to that host"),
        (OSError(errno.EIO, "Input/output error"), "input/output error"),
        (ValueError("odd"), "odd"),
        (ValueError(), "ValueError"),
    ],
)
def test_every_trouble_has_words(problem: Exception, words: str) -> None:
    assert explain_connection_problem(problem, "http://127.0.0.1:9").seen == words
