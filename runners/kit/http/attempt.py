"""A hop that failed, with all that is known of it. Pure."""

from datetime import datetime

import msgspec

from contract.result import Failure, FailureKind
from runners.kit.http.request import HopRequest
from runners.kit.http.transfer import Seen


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One hop that failed, with all that its sentence may need."""

    hop: HopRequest
    seen: Seen
    timeout_s: float
    """Of the whole check."""
    now: datetime
    proxy: str | None = None
    """The proxy without credentials. None: direct."""

    @property
    def target(self) -> str:
        """The peer as people name it: host and port, the address beside a name."""
        origin, address = self.hop.origin, self.seen.address
        if self.proxy is not None or address in {"", origin.host}:
            return str(origin)
        return f"{origin} ({address})"

    def failure(self, kind: FailureKind, message: str, code: str, **more: str | int) -> Failure:
        """The failure with the facts that every one carries."""
        origin = self.hop.origin
        detail: dict[str, str | int | float | None] = {
            "code": code,
            "hostname": origin.host,
            "port": origin.port,
            **more,
        }
        if self.seen.address and self.proxy is None:
            detail["address"] = self.seen.address
        return Failure(kind=kind, message=message, detail=detail)

    @property
    def words(self) -> str:
        """What libcurl says of it, fit to stand inside a sentence."""
        return self.seen.ended.message.strip().rstrip(".") or "no reason given"
