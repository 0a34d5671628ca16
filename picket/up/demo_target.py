"""Servers on loopback for the starter checks to look at."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final, cast

import aiohttp
import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.zone
import msgspec
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID_FOR: Final = timedelta(days=90)
_BACKDATED: Final = timedelta(hours=1)
"""A clock that is a little behind still finds the certificate valid."""


@dataclass(frozen=True, slots=True)
class DemoCertificate:
    """Files in PEM; the authority's goes into the agent's `EXTRA_CA_CERTS`."""

    authority: Path
    chain_and_key: Path

    def server_context(self) -> ssl.SSLContext:
        """What the demo target's HTTPS side serves with."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.chain_and_key)
        return context


def make_certificate(folder: Path, *, host: str) -> DemoCertificate:
    """Make both anew and write them to the folder; the server's key can be read by us alone."""
    authority_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _sign(
        _build_certificate("Picket demo authority", authority_key), authority_key, authority_key
    )
    request = _build_certificate("Picket demo target", server_key, issuer=authority.subject)
    server = _sign(request, server_key, authority_key, host=host)
    made = DemoCertificate(folder / "demo-authority.pem", folder / "demo-server.pem")
    made.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    made.chain_and_key.touch(mode=0o600)
    made.chain_and_key.write_bytes(
        server.public_bytes(serialization.Encoding.PEM) + _private_pem(server_key)
    )
    return made


def _build_certificate(
    name: str, key: ec.EllipticCurvePrivateKey, *, issuer: x509.Name | None = None
) -> x509.CertificateBuilder:
    """A certificate without extensions yet. No issuer: it signs itself."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _VALID_FOR)
    )


def _sign(
    builder: x509.CertificateBuilder,
    own_key: ec.EllipticCurvePrivateKey,
    signing_key: ec.EllipticCurvePrivateKey,
    *,
    host: str | None = None,
) -> x509.Certificate:
    """Add the extensions and sign. No host: it is an authority."""
    authority = host is None
    builder = (
        builder.add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(_key_usage(authority=authority), critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(own_key.public_key()), critical=False
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()),
            critical=False,
        )
    )
    if host is not None:
        builder = _add_server_extensions(builder, host)
    return builder.sign(signing_key, hashes.SHA256())


def _add_server_extensions(builder: x509.CertificateBuilder, host: str) -> x509.CertificateBuilder:
    names = x509.SubjectAlternativeName(
        [x509.DNSName("localhost"), x509.IPAddress(ip_address(host))]
    )
    server = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    return builder.add_extension(names, critical=False).add_extension(server, critical=False)


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


HOST: Final = "127.0.0.1"
PING_EVERY_S: Final = 5.0
_PING_LIMIT_S: Final = 3.0
_ECHO_LIMIT_S: Final = 10.0


Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]


class DemoPorts(msgspec.Struct, frozen=True, kw_only=True):
    """Where the demo target listens; kept, so that the starter checks stay right."""

    http: Port = 0
    https: Port = 0
    echo: Port = 0
    dns: Port = 0


@dataclass(frozen=True, slots=True)
class DemoTarget:
    """The running demo target."""

    ports: DemoPorts
    certificate: DemoCertificate


@asynccontextmanager
async def demo_target(folder: Path, wanted: DemoPorts) -> AsyncIterator[DemoTarget]:
    """Serve until the block ends; wanted ports that are taken by now give way to free ones."""
    certificate = make_certificate(folder, host=HOST)
    async with AsyncExitStack() as stack:
        shop = web.AppRunner(DemoShop().application(), access_log=None)
        await shop.setup()
        stack.push_async_callback(shop.cleanup)
        http, https = _listener(wanted.http), _listener(wanted.https)
        await web.SockSite(shop, http).start()
        await web.SockSite(shop, https, ssl_context=certificate.server_context()).start()
        echo = await asyncio.start_server(_echo, sock=_listener(wanted.echo))
        stack.callback(echo.close)
        dns_port = await _serve_names(stack, wanted.dns)
        ports = DemoPorts(
            http=_port(http), https=_port(https), echo=_port(echo.sockets[0]), dns=dns_port
        )
        yield DemoTarget(ports, certificate)


def _listener(wanted: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket:
    """A bound socket on the wanted port, or on a free one when it is taken."""
    bound = socket.socket(socket.AF_INET, kind)
    if kind is socket.SOCK_STREAM:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((HOST, wanted))
    except OSError:
        bound.bind((HOST, 0))
    return bound


def _port(bound: socket.socket) -> int:
    return int(bound.getsockname()[1])


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send back what comes, as it comes."""
    try:
        async with asyncio.timeout(_ECHO_LIMIT_S):
            while heard := await reader.read(4096):
                writer.write(b"echo: " + heard)
                await writer.drain()
    except (TimeoutError, ConnectionError):
        return
    finally:
        writer.close()


async def _serve_names(stack: AsyncExitStack, wanted: int) -> int:
    """The zone by UDP and TCP on the same port, as name servers do."""
    zone = DemoZone()
    stream = _listener(wanted)
    datagram = _listener(_port(stream), socket.SOCK_DGRAM)
    if _port(datagram) != _port(stream):
        stream.close()
        stream = _listener(_port(datagram))
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(partial(DemoDatagrams, zone), sock=datagram)
    stack.callback(transport.close)
    server = await asyncio.start_server(partial(serve_stream, zone), sock=stream)
    stack.callback(server.close)
    return _port(datagram)


async def ping_forever(url: str) -> None:
    """Play the nightly job that reports to its heartbeat check, through the agent's ping port."""
    limit = aiohttp.ClientTimeout(total=_PING_LIMIT_S)
    async with aiohttp.ClientSession(timeout=limit) as session:
        while True:
            try:
                async with session.post(url, headers={"user-agent": "nightly-job/1.0"}):
                    pause_s = PING_EVERY_S
            except (aiohttp.ClientError, TimeoutError):
                # The agent is not there yet, or not any more: the check is to notice, not we.
                pause_s = 1.0
            await asyncio.sleep(pause_s)


SLOW_S: Final = 0.4
"""How long `/slow` thinks."""
FLAKY_EVERY: Final = 4
"""`/flaky` answers 503 to every so many-th request."""
_STOCK: Final = {
    "shop": "corner",
    "open": True,
    "items": [{"name": "tea", "count": 12}, {"name": "bread", "count": 3}],
}


class DemoShop:
    """Answers for HTTP and HTTPS alike."""

    def __init__(self) -> None:
        self._flaky_requests = 0
        self._is_open = True

    def application(self) -> web.Application:
        """The shop's routes."""
        app = web.Application()
        app.add_routes(
            [
                web.get("/", self._front),
                web.get("/old", self._old),
                web.get("/slow", self._slow),
                web.get("/flaky", self._flaky),
                web.get("/broken", self._broken),
                web.get("/api/stock", self._stock),
                web.post("/api/orders", self._order),
                web.post("/close", self._close),
                web.post("/open", self._open),
            ]
        )
        return app

    async def _close(self, _request: web.Request) -> web.Response:
        """From now on the front page fails, so that somebody can watch what an alert does."""
        self._is_open = False
        return web.Response(text="Closed.")

    async def _open(self, _request: web.Request) -> web.Response:
        self._is_open = True
        return web.Response(text="Open.")

    async def _front(self, _request: web.Request) -> web.Response:
        if not self._is_open:
            return web.Response(status=503, text="Closed.")
        return web.Response(
            text="<!doctype html><title>Corner shop</title><h1>Open</h1>", content_type="text/html"
        )

    async def _old(self, _request: web.Request) -> web.Response:
        return web.Response(status=301, headers={"location": "/"})

    async def _slow(self, _request: web.Request) -> web.Response:
        await asyncio.sleep(SLOW_S)
        return web.Response(text="Sorry for the wait.")

    async def _flaky(self, _request: web.Request) -> web.Response:
        self._flaky_requests += 1
        if self._flaky_requests % FLAKY_EVERY == 0:
            return web.Response(status=503, text="Not right now.")
        return web.Response(text="Here you are.")

    async def _broken(self, _request: web.Request) -> web.Response:
        return web.Response(status=500, text="The till is jammed.")

    async def _stock(self, _request: web.Request) -> web.Response:
        return web.json_response(_STOCK)

    async def _order(self, request: web.Request) -> web.Response:
        try:
            order = await request.json()
        except ValueError:
            return web.json_response({"error": "send JSON"}, status=400)
        answer = {"accepted": True, "order": order}
        return web.json_response(answer, status=201, headers={"x-order": "1001"})


ZONE: Final = "shop.test."
_TEXT: Final = """
$TTL 60
@     SOA   ns hostmaster 1 3600 600 86400 60
@     NS    ns
@     A     127.0.0.1
@     MX    10 mail
@     TXT   "v=spf1 -all"
ns    A     127.0.0.1
mail  A     127.0.0.1
www   CNAME @
"""
_TCP_LIMIT_S: Final = 5.0


class DemoZone:
    """Answers questions about `shop.test`; everything else does not exist."""

    def __init__(self) -> None:
        self._zone = dns.zone.from_text(_TEXT, origin=ZONE, relativize=False)

    def answer(self, wire: bytes) -> bytes | None:
        """The answer to a question; None: it was none, and gets no answer."""
        try:
            query = dns.message.from_wire(wire)
        except (dns.exception.DNSException, ValueError):
            return None
        if len(query.question) != 1 or query.flags & dns.flags.QR:
            return None
        return self._answer_query(query).to_wire()

    def _answer_query(self, query: dns.message.Message) -> dns.message.Message:
        response = dns.message.make_response(query, recursion_available=True)
        response.flags |= dns.flags.AA
        question = query.question[0]
        if self._zone.get_node(question.name) is None:
            response.set_rcode(dns.rcode.NXDOMAIN)
            return response
        name = question.name
        for rdtype in (dns.rdatatype.CNAME, question.rdtype):
            found = self._zone.get_rrset(name, rdtype)
            if found is not None and found not in response.answer:
                response.answer.append(found)
            if found is not None and rdtype == dns.rdatatype.CNAME:
                name = found[0].target
        return response


class DemoDatagrams(asyncio.DatagramProtocol):
    """The zone over UDP."""

    def __init__(self, zone: DemoZone) -> None:
        self._zone = zone
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where answers go."""
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str | int, ...]) -> None:
        """Answer at once."""
        answer = self._zone.answer(data)
        if answer is not None and self._transport is not None:
            self._transport.sendto(answer, addr)


async def serve_stream(
    zone: DemoZone, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """The zone over one TCP connection: questions with their length in front, until it closes."""
    try:
        async with asyncio.timeout(_TCP_LIMIT_S):
            while True:
                (length,) = struct.unpack("!H", await reader.readexactly(2))
                answer = zone.answer(await reader.readexactly(length))
                if answer is None:
                    return
                writer.write(struct.pack("!H", len(answer)) + answer)
                await writer.drain()
    except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
        return
    finally:
        writer.close()
