"""Checks the way from this machine to the service."""

import asyncio
import errno
import os
import socket
import ssl
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from agent.api_client.proxies import Proxy, choose_proxy
from agent.settings import Settings
from contract import agent_api
from contract.requests import IpFamily, RecordType
from contract.result import CheckFailed
from contract.wire import encode
from picket.doctor.findings import Finding, fail, ok, warn
from picket.terminal import duration
from runners.net.dns.messages import build_question
from runners.net.dns.name_servers import HostFiles, NameServer
from runners.net.dns.query import ask
from runners.net.dns.resolve import DnsServerResolver, SystemResolver
from runners.net.sockets import literal_family
from runners.net.tls.words import WRONG_HOST, certificate_fault, handshake_fault

KEY: Final = "key"
"""What a finding of the agent's key is about."""
_LIMIT_S: Final = 10.0
_SERVER_LIMIT_S: Final = 3.0
_SKEW_S: Final = 5.0
"""Certificates, tokens and the reader of two logs stumble over more."""
_RESOLV_CONF: Final = "/etc/resolv.conf"


async def check_name_servers() -> list[Finding]:
    """Whether each configured name server answers a question (who serves the root?)."""
    servers = HostFiles().resolv_conf().servers
    return list(await asyncio.gather(*(_check_name_server(server) for server in servers)))


async def _check_name_server(server: NameServer) -> Finding:
    began_s = time.monotonic()
    question = build_question(".", RecordType.NS)
    try:
        answer = await ask(question, server, timeout_s=_SERVER_LIMIT_S)
    except CheckFailed as failed:
        fix = f"fix {_RESOLV_CONF}, or set USE_OS_DNS_RESOLVER=on if the system resolves otherwise"
        return warn("DNS", failed.failure.message, fix=fix)
    took_ms = (time.monotonic() - began_s) * 1000
    return ok("DNS", f"{server} answers {answer.message.response_code} in {duration(took_ms)}")


async def check_service_name(settings: Settings) -> Finding:
    """Whether the service's host has an address, the way that the agent looks it up."""
    host = urlsplit(settings.service_url).hostname or ""
    if literal_family(host) is not None:
        return ok("service's name", f"{host} is an address; there is nothing to look up")
    resolver = SystemResolver() if settings.use_os_dns_resolver else DnsServerResolver()
    problems: list[str] = []
    for family in IpFamily:
        try:
            return ok("service's name", f"{host} is {(await resolver.resolve(host, family))[0]}")
        except CheckFailed as failed:
            problems.append(failed.failure.message)
    return warn("service's name", problems[0], fix="check SERVICE_URL, DNS, or the proxy's DNS")


def find_proxy(settings: Settings) -> Proxy | None:
    """The proxy on the agent's way to the service. None: direct."""
    return choose_proxy(
        settings.service_url,
        https_proxy=settings.https_proxy,
        http_proxy=settings.http_proxy,
        no_proxy=settings.no_proxy,
    )


async def check_proxy(proxy: Proxy | None) -> Finding:
    """Whether somebody listens where the proxy should be."""
    if proxy is None:
        return ok("proxy", "none; the connection to the service is direct")
    parts = urlsplit(proxy.url)
    try:
        async with asyncio.timeout(_LIMIT_S):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
            writer.close()
    except (OSError, TimeoutError) as problem:
        because = explain_connection_problem(problem, proxy.url).seen
        return fail("proxy", f"{proxy.url}: {because}", fix="check HTTPS_PROXY and HTTP_PROXY")
    return ok("proxy", f"{proxy.url} accepts connections")


async def check_service(settings: Settings, proxy: Proxy | None) -> list[Finding]:
    """Whether the service takes our key, and how far our clocks are apart."""
    asked = datetime.now(UTC)
    try:
        status, date = await _renew_nothing(settings, proxy)
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as problem:
        trouble = explain_connection_problem(problem, settings.service_url)
        return [fail("service", f"{settings.service_url}: {trouble.seen}", fix=trouble.fix)]
    return [_check_key(settings, status), check_clock(date, asked=asked, now=datetime.now(UTC))]


async def _renew_nothing(settings: Settings, proxy: Proxy | None) -> tuple[int, str]:
    """Renew no lease: the smallest request that needs a key and changes nothing."""
    headers = {
        "authorization": f"Bearer {settings.api_key}",
        "user-agent": f"{agent_api.USER_AGENT_PREFIX}doctor",
        agent_api.AGENT_ID_HEADER: "picket-doctor",
        "content-type": "application/json",
    }
    auth = None
    if proxy is not None and proxy.username is not None:
        auth = aiohttp.BasicAuth(proxy.username, proxy.password)
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_LIMIT_S)) as session,
        session.post(
            settings.service_url + agent_api.RENEW,
            data=encode(agent_api.Renew(leases=())),
            headers=headers,
            proxy=proxy.url if proxy else None,
            proxy_auth=auth,
            ssl=_ssl(settings),
            allow_redirects=False,
        ) as answer,
    ):
        return answer.status, answer.headers.get("date", "")


def _ssl(settings: Settings) -> ssl.SSLContext:
    """The system's roots and our own further ones."""
    context = ssl.create_default_context()
    if settings.extra_ca_certs is not None:
        context.load_verify_locations(cafile=settings.extra_ca_certs)
    return context


def _check_key(settings: Settings, status: int) -> Finding:
    if status == HTTPStatus.OK:
        return ok(KEY, "the service accepts API_KEY")
    if status == HTTPStatus.UNAUTHORIZED:
        fix = "compare API_KEY or API_KEY_FILE with the location's key, or create a new key"
        return fail(KEY, f"the service at {settings.service_url} refuses API_KEY", fix=fix)
    seen = f"{settings.service_url} answered {status} {_phrase(status)}".rstrip()
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        return fail("service", seen, fix="wait until it has started, or read its log")
    fix = "check that SERVICE_URL is a Picket service, and that no proxy answers instead"
    return fail("service", seen, fix=fix)


def _phrase(status: int) -> str:
    try:
        return f"({HTTPStatus(status).phrase})"
    except ValueError:
        return ""


def check_clock(date: str, *, asked: datetime, now: datetime) -> Finding:
    """How far our clock is from the service's, by its Date header, which is cut to seconds.

    It was told at some time since we asked: an answer that took long is no skew.
    """
    try:
        theirs = parsedate_to_datetime(date)
    except ValueError:
        return warn(
            "clock",
            "the service sent no valid Date header",
            fix="check what answers at SERVICE_URL",
        )
    skew_s = (min(max(theirs, asked), now) - theirs).total_seconds()
    if -_SKEW_S < skew_s < _SKEW_S + 1:
        return ok("clock", "agrees with the service's")
    way = "ahead of" if skew_s > 0 else "behind"
    seen = f"{abs(skew_s):.0f} s {way} the service's"
    return warn("clock", seen, fix="run a time service such as chrony on both hosts")


_START: Final = "start the service, or check SERVICE_URL, firewall and proxy"
_PROXY: Final = "check HTTPS_PROXY and HTTP_PROXY"
_LOOK_UP: Final = "check the name and the DNS"
_WORDS: Final = {
    errno.ECONNREFUSED: "connection refused: nothing listens there",
    errno.ECONNRESET: "it closed the connection without an answer",
    errno.EPIPE: "it closed the connection without an answer",
    errno.ETIMEDOUT: "no answer in time",
    errno.EHOSTUNREACH: "no route to that host",
    errno.ENETUNREACH: "no route to that network",
}
_CLOSED: Final = frozenset({errno.ECONNRESET, errno.EPIPE})
_STRANGER: Final = "no authority that this host trusts signed it"

# OpenSSL's verify results.
_OUT_OF_TIME: Final = frozenset({9, 10})
_SELF_SIGNED: Final = 18
_STRANGERS: Final = frozenset({2, 19, 20, 21, 27})
_WRONG_NAME: Final = frozenset({WRONG_HOST, 63, 64})


@dataclass(frozen=True, slots=True)
class ConnectionProblem:
    """Why a service or a proxy cannot be reached."""

    seen: str
    fix: str


def explain_connection_problem(problem: BaseException, url: str) -> ConnectionProblem:
    """The trouble, in words that say nothing of keys: an error may hold the request's headers."""
    match problem:
        case aiohttp.ClientResponseError():
            trouble = ConnectionProblem(f"the proxy answered {problem.status}", _PROXY)
        case aiohttp.ClientProxyConnectionError():
            seen = explain_connection_problem(problem.os_error, url).seen
            trouble = ConnectionProblem(f"its proxy cannot be reached ({seen})", _PROXY)
        case aiohttp.ClientConnectorCertificateError():
            trouble = _explain_certificate(problem.certificate_error)
        case aiohttp.ClientConnectorDNSError():
            trouble = ConnectionProblem(f"the name {problem.host} cannot be looked up", _LOOK_UP)
        case aiohttp.ClientConnectorError():
            trouble = explain_connection_problem(problem.os_error, url)
        case ssl.SSLError():
            trouble = _explain_handshake(problem)
        case aiohttp.ServerDisconnectedError():
            trouble = _explain_os_error(ConnectionResetError(errno.ECONNRESET, ""), url)
        case OSError():
            trouble = _explain_os_error(problem, url)
        case _:
            trouble = ConnectionProblem(str(problem) or type(problem).__name__, _START)
    return trouble


def _explain_os_error(problem: OSError, url: str) -> ConnectionProblem:
    if isinstance(problem, socket.gaierror):
        return ConnectionProblem("its name cannot be looked up", _LOOK_UP)
    if isinstance(problem, TimeoutError):
        return ConnectionProblem("no answer in time", _START)
    if problem.errno in _CLOSED and url.startswith("http://"):
        fix = "check what listens there; if it speaks TLS, use https:// in SERVICE_URL"
        return ConnectionProblem(_WORDS[errno.ECONNRESET], fix)
    number = problem.errno or 0
    words = _WORDS.get(number) or (os.strerror(number).lower() if number > 0 else str(problem))
    return ConnectionProblem(words, _START)


def _explain_handshake(problem: ssl.SSLError) -> ConnectionProblem:
    why = handshake_fault(problem.reason or str(problem))
    fix = "check SERVICE_URL; use http:// for a service without TLS"
    return ConnectionProblem(f"it did not agree on TLS: {why}", fix)


def _explain_certificate(problem: Exception) -> ConnectionProblem:
    code = getattr(problem, "verify_code", 0)
    said = str(getattr(problem, "verify_message", "") or problem).rstrip(".")
    words = _STRANGER if code in _STRANGERS else said
    why = certificate_fault(code, (), host="", now=datetime.now(UTC), words=words)
    return ConnectionProblem(
        f"its certificate cannot be trusted: {why}", _suggest_certificate_fix(code)
    )


def _suggest_certificate_fix(code: int) -> str:
    if code in _WRONG_NAME:
        return "use a host in SERVICE_URL that the certificate is valid for"
    if code in _OUT_OF_TIME:
        return "renew the certificate, and check both hosts' clocks"
    if code == _SELF_SIGNED:
        return "copy the certificate to this host and name the file in EXTRA_CA_CERTS"
    return "name a file with the certificate of its authority in EXTRA_CA_CERTS"
