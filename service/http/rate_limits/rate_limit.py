"""Rate limits, and the addresses by which they count clients without a key."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

from starlette.requests import HTTPConnection

_MOST_NAMES: Final = 10_000
"""How many clients a class remembers; the least recent one is forgotten, which resets its limit."""
_PARTS: Final = 100
"""Other processes are told of a client once for each such part of what it may send."""


class RateClass(StrEnum):
    """Requests that are counted together."""

    GENERAL = "general"
    """Everything else, per API key; without a key, per address."""
    RESULT_LISTS = "result lists"
    """Lists of a check's results, per API key."""
    ANALYTICS = "analytics"
    """Series, summaries and reports, per API key."""
    LOCATION_METRICS = "location metrics"
    """Samples of a location's queue, per API key."""
    TRIGGER_LINKS = "trigger links"
    """Calls of a trigger's link, per trigger."""
    PINGS = "pings"
    """Pings of a heartbeat that come to the service itself, per token."""
    GUESSED_PINGS = "guessed pings"
    """Pings with tokens that no heartbeat has, per address."""
    SUBSCRIPTIONS = "subscriptions"
    """Subscriptions to status pages by visitors, per address."""
    AGENTS = "agents"
    """All calls of agents, per location key."""
    REFUSED = "refused keys"
    """Requests with an invalid key, per address."""
    SIGN_INS = "sign-ins"
    """Attempts to sign in with a password from browsers that are not known, per address."""
    SIGN_INS_FROM_PLACE = "sign-ins of a user from an address"
    """Such attempts per user and address."""
    SIGN_INS_OF_USER = "sign-ins of a user"
    """Such attempts per user, from wherever they come."""
    SIGN_INS_OF_KNOWN = "sign-ins of a user from known browsers"
    """Attempts from browsers that the user has signed in with that password before, per user."""
    OIDC = "sign-ins by an identity provider"
    """Ways to the identity provider that are begun, and those back, per address."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many requests a client may send in how much time, all of them at once if it wants."""

    requests: int
    """0: without a limit."""
    in_s: float = 60
    patience_s: float = 0
    """How long a request beyond them may wait for its turn. 0: it is refused at once."""


ALLOWANCES: Final[Mapping[RateClass, Allowance]] = {
    RateClass.GENERAL: Allowance(600),
    RateClass.RESULT_LISTS: Allowance(60),
    RateClass.ANALYTICS: Allowance(30),
    RateClass.LOCATION_METRICS: Allowance(300, 24 * 3600),
    RateClass.TRIGGER_LINKS: Allowance(10),
    RateClass.PINGS: Allowance(300),
    RateClass.GUESSED_PINGS: Allowance(300),
    RateClass.SUBSCRIPTIONS: Allowance(20, 3600),
    RateClass.AGENTS: Allowance(120_000),
    RateClass.REFUSED: Allowance(300),
    RateClass.SIGN_INS: Allowance(30, 300),
    RateClass.SIGN_INS_FROM_PLACE: Allowance(10, 900),
    RateClass.SIGN_INS_OF_USER: Allowance(300, 900, patience_s=10),
    RateClass.SIGN_INS_OF_KNOWN: Allowance(10, 300),
    RateClass.OIDC: Allowance(60, 300),
}
"""The limits where no setting changes them."""
_CLASSES: Final[Mapping[tuple[str, str], RateClass]] = {
    ("GET", "/v1/check-results/{checkId}"): RateClass.RESULT_LISTS,
    ("GET", "/v2/check-results/{checkId}"): RateClass.RESULT_LISTS,
    ("GET", "/v1/private-locations/{id}/metrics"): RateClass.LOCATION_METRICS,
    ("GET", "/v1/reporting"): RateClass.ANALYTICS,
}
_ANALYTICS: Final = "/v1/analytics/"


def class_of(method: str, path: str) -> RateClass:
    """The class of an operation, by its path with the names of its parameters."""
    if path.startswith(_ANALYTICS):
        return RateClass.ANALYTICS
    return _CLASSES.get((method, path), RateClass.GENERAL)


@dataclass(frozen=True, slots=True)
class Pace:
    """How requests of one client may follow each other; all times are whole ticks of one clock.

    Sums of floats are sometimes a little too large, which refuses the last request of an allowance,
    or the only one.
    """

    span: int
    """How far ahead of the clock a client may be."""
    step: int
    """How far ahead one request takes it."""

    @classmethod
    def of(cls, allowance: Allowance, *, ticks_per_s: int) -> "Pace":
        """The pace at which this many requests pass in this time."""
        span = round(allowance.in_s * ticks_per_s)
        return cls(span, span // max(allowance.requests, 1))

    def advance(self, free_at: int, now: int) -> tuple[int, int]:
        """Where one more request takes a client, and by how much that is too far; <= 0: it is not.

        `free_at`: where the request before has taken it.
        """
        free_at = max(free_at, now) + self.step
        return free_at, free_at - now - self.span


class RateLimits:
    """Counts requests by class and client: those of this process, and those it is told of."""

    def __init__(
        self,
        *,
        monotonic: Callable[[], float],
        allowances: Mapping[RateClass, Allowance] | None = None,
    ) -> None:
        """`allowances`: those that differ from the usual ones."""
        chosen = {**ALLOWANCES, **(allowances or {})}
        self._of = {
            kind: RateLimit(allowance, monotonic=monotonic) for kind, allowance in chosen.items()
        }

    def wait_s(self, kind: RateClass, name: str) -> float:
        """Count one request; 0 when it may go on, else how long to wait before the next try."""
        return self._of[kind].wait_s(_digest(name))

    def take_untold(self) -> Sequence[tuple[RateClass, str, int]]:
        """Requests that went on here and that other processes should know of, by client.

        Clients are told by a digest of their names.
        """
        return [
            (kind, name, requests)
            for kind, limit in self._of.items()
            for name, requests in limit.take_untold()
        ]

    def count_elsewhere(self, kind: RateClass, digest: str, requests: int) -> None:
        """Count requests of a client that went on in another process."""
        self._of[kind].count_elsewhere(digest, requests)


def _digest(name: str) -> str:
    """A name as processes tell it: some are tokens, and each role of a database may listen."""
    return blake2b(name.encode(errors="surrogatepass"), digest_size=16).hexdigest()


class RateLimit:
    """The limit of one class."""

    def __init__(self, allowance: Allowance, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._is_limited = allowance.requests > 0
        self._pace = Pace.of(allowance, ticks_per_s=_NS_PER_S)
        self._worth_telling = max(1, allowance.requests // _PARTS)
        self._free_at_ns: OrderedDict[str, int] = OrderedDict()
        self._untold: dict[str, int] = {}

    def wait_s(self, name: str) -> float:
        """Count one request; 0 when it may go on, else how long to wait before the next try."""
        if not self._is_limited:
            return 0
        now_ns = self._now_ns()
        free_at_ns, early_ns = self._pace.advance(self._free_at_ns.get(name, now_ns), now_ns)
        if early_ns > 0:
            return early_ns / _NS_PER_S
        self._untold[name] = self._untold.get(name, 0) + 1
        self._note(name, free_at_ns)
        return 0

    def take_untold(self) -> Sequence[tuple[str, int]]:
        """Clients of whom enough went on here, and how much; each request is taken once."""
        taken = [one for one in self._untold.items() if one[1] >= self._worth_telling]
        for name, _ in taken:
            del self._untold[name]
        return taken

    def count_elsewhere(self, name: str, requests: int) -> None:
        """Count requests that went on in another process; no more than the allowance counts."""
        now_ns = self._now_ns()
        free_at_ns = max(self._free_at_ns.get(name, now_ns), now_ns) + requests * self._pace.step
        self._note(name, min(free_at_ns, now_ns + self._pace.span))

    def _note(self, name: str, free_at_ns: int) -> None:
        self._free_at_ns[name] = free_at_ns
        self._free_at_ns.move_to_end(name)
        if len(self._free_at_ns) > _MOST_NAMES:
            forgotten, _ = self._free_at_ns.popitem(last=False)
            self._untold.pop(forgotten, None)

    def _now_ns(self) -> int:
        return round(self._monotonic() * _NS_PER_S)


_NS_PER_S: Final = 1_000_000_000
_MOST_LETTERS: Final = 100
_OF_ONE_PLACE_BITS: Final = 64


def address_of(request: HTTPConnection) -> str | None:
    """The other end's address; None: not known.

    What a trusted proxy says of it counts, and whoever asks through another can write anything.
    """
    return request.client.host[:_MOST_LETTERS] if request.client else None


def place_of(request: HTTPConnection) -> str:
    """The address as limits count it: whoever has one IPv6 address has 2^64 of them."""
    host = address_of(request) or ""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(IPv6Network((int(address), _OF_ONE_PLACE_BITS), strict=False))
