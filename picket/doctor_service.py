"""What `picket doctor` asks on the way to the service: names, proxy, clock, key."""

import asyncio
import ssl
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from agent.proxies import Proxy, proxy_for
from agent.settings import Settings
from contract import agent_api
from contract.requests import IpFamily, RecordType
from contract.wire import encode
from picket.findings import Finding, fail, ok, warn
from picket.trouble import trouble_with
from runners.kit.addresses import literal_family
from runners.kit.dns.exchange import ask
from runners.kit.dns.messages import ask_for
from runners.kit.dns.name_servers import HostFiles, NameServer
from runners.kit.dns.resolve import DnsServerResolver, SystemResolver
from runners.kit.failures import CheckFailed

KEY: Final = "key"
"""What a finding of the agent's key is about."""
_LIMIT_S: Final = 10.0
_SERVER_LIMIT_S: Final = 3.0
_SKEW_S: Final = 5.0
"""Certificates, tokens and the reader of two logs stumble over more."""
_RESOLV_CONF: Final = "/etc/resolv.conf"


async def name_servers() -> list[Finding]:
    """Whether each configured name server answers a question (who serves the root?)."""
    servers = HostFiles().resolv_conf().servers
    return list(await asyncio.gather(*(_name_server(server) for server in servers)))


async def _name_server(server: NameServer) -> Finding:
    began_s = time.monotonic()
    question = ask_for(".", RecordType.NS)
    try:
        answer = await ask(question, server, timeout_s=_SERVER_LIMIT_S)
    except CheckFailed as failed:
        fix = f"fix {_RESOLV_CONF}, or set USE_OS_DNS_RESOLVER=on where the system asks otherwise"
        return warn("DNS", failed.failure.message, fix=fix)
    took_ms = (time.monotonic() - began_s) * 1000
    return ok("DNS", f"{server} answers {answer.message.response_code} in {took_ms:.0f} ms")


async def service_name(settings: Settings) -> Finding:
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


def own_proxy(settings: Settings) -> Proxy | None:
    """The proxy on the agent's way to the service. None: direct."""
    return proxy_for(
        settings.service_url,
        https_proxy=settings.https_proxy,
        http_proxy=settings.http_proxy,
        no_proxy=settings.no_proxy,
    )


async def proxy_answers(proxy: Proxy | None) -> Finding:
    """Whether somebody listens where the proxy should be."""
    if proxy is None:
        return ok("proxy", "none; the way to the service is direct")
    parts = urlsplit(proxy.url)
    try:
        async with asyncio.timeout(_LIMIT_S):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
            writer.close()
    except (OSError, TimeoutError) as problem:
        because = trouble_with(problem, proxy.url).seen
        return fail("proxy", f"{proxy.url}: {because}", fix="check HTTPS_PROXY and HTTP_PROXY")
    return ok("proxy", f"{proxy.url} accepts connections")


async def service_answers(settings: Settings, proxy: Proxy | None) -> list[Finding]:
    """Whether the service takes our key, and how far our clocks are apart."""
    asked = datetime.now(UTC)
    try:
        status, date = await _renew_nothing(settings, proxy)
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as problem:
        trouble = trouble_with(problem, settings.service_url)
        return [fail("service", f"{settings.service_url}: {trouble.seen}", fix=trouble.fix)]
    return [_key(settings, status), clock_skew(date, asked=asked, now=datetime.now(UTC))]


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


def _key(settings: Settings, status: int) -> Finding:
    if status == HTTPStatus.OK:
        return ok(KEY, "the service takes API_KEY")
    if status == HTTPStatus.UNAUTHORIZED:
        fix = "compare API_KEY, or API_KEY_FILE, with the location's key, or make it a new one"
        return fail(KEY, f"the service at {settings.service_url} refuses API_KEY", fix=fix)
    seen = f"{settings.service_url} answered {status} {_phrase(status)}".rstrip()
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        return fail("service", seen, fix="wait until it has started, or look at its log")
    fix = "check that SERVICE_URL leads to a Picket service, and what a proxy makes of it"
    return fail("service", seen, fix=fix)


def _phrase(status: int) -> str:
    try:
        return f"({HTTPStatus(status).phrase})"
    except ValueError:
        return ""


def clock_skew(date: str, *, asked: datetime, now: datetime) -> Finding:
    """How far our clock is from the service's, by its Date header, which is cut to seconds.

    It was told at some time since we asked: an answer that took long is no skew.
    """
    try:
        theirs = parsedate_to_datetime(date)
    except ValueError:
        return warn("clock", "the service told no time", fix="check what answers at SERVICE_URL")
    skew_s = (min(max(theirs, asked), now) - theirs).total_seconds()
    if -_SKEW_S < skew_s < _SKEW_S + 1:
        return ok("clock", "agrees with the service's")
    way = "ahead of" if skew_s > 0 else "behind"
    seen = f"{abs(skew_s):.0f} s {way} the service's"
    return warn("clock", seen, fix="run a time service such as chrony on both hosts")
