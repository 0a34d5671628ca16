"""An exchange from first request to last response: redirects, cookies, phases."""

import ipaddress
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.message import Message
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit
from urllib.request import Request

import msgspec
import pycurl

from contract.evidence import Hop, SentRequest, TlsFacts
from contract.job import ClientCertificate
from contract.requests import IpFamily
from contract.result import CheckFailed, Failure, FailureKind, Timings
from runners.net.http.errors import ASKS_FOR_CREDENTIALS, FailedHop, failure_of, not_let_through
from runners.net.http.request import Header, HopRequest, Origin, address
from runners.net.http.response import Head
from runners.net.http.tls import tls_facts
from runners.net.http.transfer import CurlTimings, TransferResult
from runners.net.sockets import wrong_family

if TYPE_CHECKING:
    from http.cookiejar import CookieJar


@dataclass(frozen=True, slots=True)
class Route:
    """What stands between the agent and the target, and what the agent shows."""

    proxy_url: str | None = None
    """None: direct."""
    certificates: tuple[ClientCertificate, ...] = ()
    """Newest first."""

    @classmethod
    def of(cls, proxy_url: str | None, certificates: Sequence[ClientCertificate]) -> "Route":
        """The route of one exchange."""
        if proxy_url is None and not certificates:
            return DIRECT
        return cls(proxy_url or None, tuple(certificates))

    @property
    def is_plain(self) -> bool:
        """Nothing has to be set."""
        return self.proxy_url is None and not self.certificates

    @property
    def proxy_shown(self) -> str | None:
        """Host and port of the proxy, without credentials. None: direct."""
        if self.proxy_url is None:
            return None
        try:
            parts = urlsplit(with_scheme(self.proxy_url))
            port = parts.port
        except ValueError:  # a password with a slash in it would pass for a port
            return "(its address cannot be read)"
        host = parts.hostname or ""
        host = f"[{host}]" if ":" in host else host
        return host if port is None else f"{host}:{port}"

    @property
    def reads_requests(self) -> bool:
        """Whether the proxy speaks HTTP, and so answers itself where it is asked in clear."""
        proxy_url = with_scheme(self.proxy_url or "socks5://").lower()
        return proxy_url.startswith(("http://", "https://"))

    def certificate_for(self, origin: Origin) -> ClientCertificate | None:
        """The certificate to show: an exact host wins, then the newest glob. None: none fits."""
        places = (origin.host, f"{origin.host}:{origin.port}")
        for one in self.certificates:
            if one.host.lower() in places:
                return one
        for one in self.certificates:
            if any(fnmatchcase(place, one.host.lower()) for place in places):
                return one
        return None

    def settings(self, hop: HopRequest) -> list[tuple[int, Any]]:
        """Options of libcurl for this hop."""
        settings: list[tuple[int, Any]] = []
        if self.proxy_url is not None:
            settings.append((pycurl.PROXY, with_scheme(self.proxy_url).encode()))
        certificate = self.certificate_for(hop.origin) if hop.origin.scheme == "https" else None
        if certificate is not None:
            settings.append((pycurl.SSLCERT_BLOB, certificate.cert.encode()))
            settings.append((pycurl.SSLKEY_BLOB, certificate.key.encode()))
            if certificate.passphrase is not None:
                settings.append((pycurl.KEYPASSWD, certificate.passphrase.encode()))
        return settings


DIRECT = Route()


def with_scheme(proxy_url: str) -> str:
    """As a URL: a proxy without a scheme speaks HTTP."""
    return proxy_url if "://" in proxy_url else f"http://{proxy_url}"


def is_literal(host: str) -> bool:
    """Whether the host is an address in its plain form, so that nothing has to be resolved.

    Other forms (127.1, 0x7f000001) are understood by libcurl too; they count as names here, so
    that the address that comes of them is judged.
    """
    return _version(host) is not None


def family_mismatch(host: str, family: IpFamily) -> str | None:
    """Why an address cannot be reached by this family. None: it can, or it is a name."""
    return wrong_family(host, family)


@lru_cache(maxsize=4096)
def _version(host: str) -> int | None:
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return None


_US_PER_MS: Final = 1000.0


class Lap(msgspec.Struct, frozen=True):
    """One hop's clock."""

    ticks: CurlTimings
    resolves: bool
    """A name had to be looked up."""
    answered: bool
    """An answer began; libcurl has a time for its first byte even where there is none."""


def timings(laps: Sequence[Lap]) -> Timings:
    """The phases of a chain of redirects, each summed over all hops.

    Summed, so that the phases add up to the total, which is what thresholds are held against.
    A phase that no hop went through is None. Through a proxy, dns and tcp are those of the proxy.
    """
    phases = [_phases(lap) for lap in laps]
    if not phases:
        return Timings()
    if len(phases) == 1:
        wait, dns, tcp, tls, first_byte, download, total = phases[0]
    else:
        wait, dns, tcp, tls, first_byte, download, total = map(_sum, zip(*phases, strict=True))
    return Timings(
        wait=wait,
        dns=dns,
        tcp=tcp,
        tls=tls,
        first_byte=first_byte,
        download=download,
        total=total,
    )


def _phases(lap: Lap) -> tuple[float | None, ...]:
    """Wait, dns, tcp, tls, first byte, download and total in ms."""
    ticks, resolves = lap.ticks, lap.resolves
    looked_up = max(ticks.queue, ticks.dns)
    wait, dns = ticks.queue, looked_up - ticks.queue
    if not resolves:
        wait, dns = looked_up, 0
    connected = max(ticks.tcp, ticks.tls)
    return (
        wait / _US_PER_MS,
        dns / _US_PER_MS if resolves and ticks.dns else None,
        _between(looked_up, ticks.tcp),
        _between(ticks.tcp, ticks.tls),
        _between(connected, ticks.first_byte) if lap.answered else None,
        _between(ticks.first_byte, ticks.total) if lap.answered else None,
        ticks.total / _US_PER_MS,
    )


def _between(start: int, end: int) -> float | None:
    """From the end of one phase to the end of the next. None: the next did not come to an end."""
    if not end:
        return None
    return (end - start) / _US_PER_MS if end > start else 0.0


def _sum(parts: tuple[float | None, ...]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The last answer of a chain."""

    head: Head
    body: bytes
    """Decoded; as much as was to be kept."""
    body_bytes: int
    """How much was read."""
    body_cut: bool
    """Reading stopped at the limit."""
    charset: str | None = None
    """What the body is written in, whatever its header says. None: as the header says."""


class HttpExchange(msgspec.Struct, frozen=True, kw_only=True):
    """What an exchange showed; after a failure, as much as there was to see."""

    sent: SentRequest
    timings: Timings
    hops: tuple[Hop, ...]
    answer: Answer | None
    """None: no answer began."""
    tls: TlsFacts | None
    """Of the last hop that spoke TLS. None: none did."""
    remote_address: str | None
    """None: no connection, or a proxy hid it."""
    failure: Failure | None
    """None: the last answer was read to its end, or to the limit."""


class RedirectChain:
    """The hops of one exchange, as far as they have come."""

    def __init__(self, hop: HopRequest, *, timeout_s: float, route: Route, keep_bytes: int) -> None:
        self.hop = hop
        self.route = route
        self.keep_bytes = keep_bytes
        self.failure: Failure | None = None
        self.head: Head | None = None
        self._timeout_s = timeout_s
        self._ends_at = time.monotonic() + timeout_s
        self._bare = self._sent = hop
        self._cookies = ChainCookies()
        self._hops: list[Hop] = []
        self._laps: list[Lap] = []
        self._seen: TransferResult | None = None
        self._tls: TlsFacts | None = None

    def left_ms(self) -> int:
        """What is left of the time limit; at least 1, because 0 means no limit to libcurl."""
        return max(1, int((self._ends_at - time.monotonic()) * 1000))

    def take(self, seen: TransferResult, *, accepted_in_spite_of: str | None) -> None:
        """Record what a hop showed."""
        hop, direct = self.hop, self.route.proxy_url is None
        self._seen, self.head = seen, seen.head
        resolves = not direct or not is_literal(hop.origin.host)
        self._laps.append(Lap(seen.ticks, resolves, answered=seen.head is not None))
        if hop.origin.scheme == "https":
            self._take_tls(seen, accepted_in_spite_of)
        if seen.head is not None:
            self._hops.append(
                Hop(
                    url=hop.url,
                    status_code=seen.head.status_code,
                    location=seen.head.headers.get("location"),
                    remote_address=seen.address if direct else None,
                    total_ms=seen.ticks.total / 1000,
                )
            )
        if seen.ended.code and not seen.body_cut:
            self.failure = failure_of(self._attempt(seen))
        elif seen.head is not None and not seen.head.is_complete:
            self.failure = _broken_off_early(self._attempt(seen))
        elif seen.head is not None and self._is_of_the_proxy(seen.head):
            self.failure = not_let_through(self._attempt(seen))

    def _is_of_the_proxy(self, head: Head) -> bool:
        """407 is a proxy's word by its definition; through a tunnel it would be the target's."""
        in_clear = self.hop.origin.scheme == "http"
        return head.status_code == ASKS_FOR_CREDENTIALS and in_clear and self.route.reads_requests

    def _take_tls(self, seen: TransferResult, accepted_in_spite_of: str | None) -> None:
        facts = tls_facts(
            seen,
            host=self.hop.origin.host,
            accepted_in_spite_of=accepted_in_spite_of,
            now=datetime.now(UTC),
        )
        self._tls = facts or self._tls

    def _attempt(self, seen: TransferResult) -> FailedHop:
        return FailedHop(
            hop=self.hop,
            seen=seen,
            timeout_s=self._timeout_s,
            now=datetime.now(UTC),
            proxy=self.route.proxy_shown,
        )

    def go_on(self, head: Head, location: str) -> None:
        """Turn to the next hop, or fail.

        Raises:
            CheckFailed: of kind REDIRECT.
        """
        # From the request without the chain's cookies: they are of the jar, which knows the newest.
        following = next_hop(self._bare, head.status_code, location)
        if len(self._hops) > MAX_REDIRECTS:
            raise too_many([one.url for one in self._hops], following.url)
        self._cookies.take(self.hop, head.set_cookies)
        self._bare = following
        self.hop = with_cookies(following, self._cookies.of(following))

    def exchanged(self) -> HttpExchange:
        """All that was seen."""
        seen = self._seen
        direct = self.route.proxy_url is None
        answer = None
        if seen is not None and seen.head is not None:
            answer = Answer(
                head=seen.head,
                body=seen.body,
                body_bytes=seen.body_bytes,
                body_cut=seen.body_cut,
            )
        return HttpExchange(
            sent=self._sent.evidence,
            timings=timings(self._laps),
            hops=tuple(self._hops),
            answer=answer,
            tls=self._tls,
            remote_address=(seen.address or None) if seen is not None and direct else None,
            failure=self.failure,
        )


def _broken_off_early(attempt: FailedHop) -> Failure:
    """What libcurl takes for the end of the headers: the end of the connection."""
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"{attempt.target} closed the connection in the middle of its headers.",
        "ERR_INCOMPLETE_HEADERS",
    )


MAX_REDIRECTS: Final = 10
MAX_LOCATION_CHARS: Final = 8192
"""As long as servers take a request's address; longer ones would swell the result hop by hop."""
SHOWN_LOCATION_CHARS: Final = 500
"""How much of an address a sentence shows."""
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_OF_THE_BODY: Final = frozenset(
    {"content-type", "content-encoding", "content-language", "content-location"}
)


def next_hop(hop: HopRequest, status_code: int, location: str) -> HopRequest:
    """The request that follows a redirect.

    303 turns everything but HEAD into GET, 301 and 302 only POST, as browsers and curl do; the
    rest repeats method and body. What is personal (credentials, cookies, locked headers, a Host
    of one's own) never leaves its origin, and does not come back on the way home either.

    Raises:
        CheckFailed: of kind REDIRECT, when the location is no http or https URL.
    """
    url, origin = _target(hop, location)
    headers = hop.headers
    if origin != hop.origin:
        headers = tuple(one for one in headers if not one.personal)
    method, body = _method_after(status_code, hop.method), hop.body
    if method != hop.method:
        body = None
        headers = tuple(one for one in headers if one.name.lower() not in _OF_THE_BODY)
    return replace(hop, url=url, origin=origin, method=method, body=body, headers=headers)


def _target(hop: HopRequest, location: str) -> tuple[str, Origin]:
    shown = _render(location)
    detail = {"code": "ERR_BAD_REDIRECT", "location": shown}
    if len(location) > MAX_LOCATION_CHARS:
        raise CheckFailed(
            FailureKind.REDIRECT,
            f"{_render(hop.url)} redirects to an address of {len(location)} characters; "
            f"{MAX_LOCATION_CHARS} is the longest that is followed.",
            detail,
        )
    try:
        return address(urljoin(hop.url, location))
    except (CheckFailed, ValueError) as problem:
        raise CheckFailed(
            FailureKind.REDIRECT,
            f"{_render(hop.url)} redirects to {shown}, which is no http or https URL.",
            detail,
        ) from problem


def _render(url: str) -> str:
    return url if len(url) <= SHOWN_LOCATION_CHARS else f"{url[:SHOWN_LOCATION_CHARS]}…"


def with_cookies(hop: HopRequest, cookies: str | None) -> HopRequest:
    """The request with the cookies that the chain has set so far, after the user's own."""
    if cookies is None:
        return hop
    own = [one.value for one in hop.headers if one.name.lower() == "cookie"]
    rest = tuple(one for one in hop.headers if one.name.lower() != "cookie")
    return replace(
        hop, headers=(*rest, Header("Cookie", "; ".join((*own, cookies)), personal=True))
    )


def too_many(visited: Sequence[str], location: str) -> CheckFailed:
    """The end of a chain that does not end by itself; a loop is shown."""
    return CheckFailed(
        FailureKind.REDIRECT,
        f"Gave up after {MAX_REDIRECTS} redirects; the last one pointed to "
        f"{_render(location)}{_loop(visited, location)}.",
        {"code": "ERR_TOO_MANY_REDIRECTS", "location": _render(location)},
    )


def _loop(visited: Sequence[str], location: str) -> str:
    if location not in visited:
        return ""
    since = len(visited) - 1 - visited[::-1].index(location)
    circle = [_render(_path(url)) for url in (*visited[since:], location)]
    return f", which goes round in a circle: {' → '.join(circle)}"


def _path(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _method_after(status_code: int, method: str) -> str:
    if status_code == 303:
        return method if method == "HEAD" else "GET"
    if status_code in {301, 302} and method == "POST":
        return "GET"
    return method


_MAX_COOKIES: Final = 100
"""More than any login needs; beyond that, what a hop sets is not kept."""


class ChainCookies:
    """What the hops so far have set, sent back as a browser would."""

    def __init__(self) -> None:
        self._jar: CookieJar | None = None
        """None: nothing has been set yet, as is usual; a jar costs more than an exchange."""

    def take(self, hop: HopRequest, lines: tuple[str, ...]) -> None:
        """Keep what an answer to this hop set."""
        if not lines:
            return
        if self._jar is None:
            # Imported here: few targets set cookies on the way, and it holds 200 kB.
            from http.cookiejar import CookieJar  # noqa: PLC0415

            self._jar = CookieJar()
        if len(self._jar) < _MAX_COOKIES:
            asked = Request(hop.url)  # noqa: S310 - never opened, only matched
            # The jar asks its answer for nothing but `info()`.
            self._jar.extract_cookies(_Answer(lines), asked)  # type: ignore[arg-type]

    def of(self, hop: HopRequest) -> str | None:
        """The Cookie header for this hop. None: none."""
        if self._jar is None:
            return None
        request = Request(hop.url)  # noqa: S310 - never opened, only matched
        self._jar.add_cookie_header(request)
        return request.get_header("Cookie")


class _Answer:
    """As much of a response as the jar asks for."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        self._headers = Message()
        for line in lines:
            self._headers.add_header("Set-Cookie", line)

    def info(self) -> Message:
        return self._headers
