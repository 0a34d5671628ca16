"""The hops of one exchange, as far as they have come, and what they showed."""

import time
from datetime import UTC, datetime

import msgspec

from contract.http_evidence import Hop, SentRequest, TlsFacts
from contract.result import Failure, FailureKind, Timings
from runners.kit.http.attempt import Attempt
from runners.kit.http.connecting import ASKS_FOR_CREDENTIALS, not_let_through
from runners.kit.http.cookies import ChainCookies
from runners.kit.http.failures import failure_of
from runners.kit.http.phases import Lap, timings
from runners.kit.http.redirects import MAX_REDIRECTS, next_hop, too_many, with_cookies
from runners.kit.http.request import HopRequest
from runners.kit.http.response import Head
from runners.kit.http.route import Route, is_literal
from runners.kit.http.tls import tls_facts
from runners.kit.http.transfer import Seen


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


class Exchanged(msgspec.Struct, frozen=True, kw_only=True):
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


class Chain:
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
        self._seen: Seen | None = None
        self._tls: TlsFacts | None = None

    def left_ms(self) -> int:
        """What is left of the time limit; at least 1, because 0 means no limit to libcurl."""
        return max(1, int((self._ends_at - time.monotonic()) * 1000))

    def take(self, seen: Seen, *, accepted_in_spite_of: str | None) -> None:
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

    def _take_tls(self, seen: Seen, accepted_in_spite_of: str | None) -> None:
        facts = tls_facts(
            seen,
            host=self.hop.origin.host,
            accepted_in_spite_of=accepted_in_spite_of,
            now=datetime.now(UTC),
        )
        self._tls = facts or self._tls

    def _attempt(self, seen: Seen) -> Attempt:
        return Attempt(
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

    def exchanged(self) -> Exchanged:
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
        return Exchanged(
            sent=self._sent.evidence,
            timings=timings(self._laps),
            hops=tuple(self._hops),
            answer=answer,
            tls=self._tls,
            remote_address=(seen.address or None) if seen is not None and direct else None,
            failure=self.failure,
        )


def _broken_off_early(attempt: Attempt) -> Failure:
    """What libcurl takes for the end of the headers: the end of the connection."""
    return attempt.failure(
        FailureKind.PROTOCOL,
        f"{attempt.target} closed the connection in the middle of its headers.",
        "ERR_INCOMPLETE_HEADERS",
    )
