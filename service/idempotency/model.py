"""A request that may come twice, and the answer that it gets both times."""

from dataclasses import dataclass, field

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotentRequest:
    """A request with an Idempotency-Key."""

    account_id: str
    key: str = field(repr=False)
    """The key as it was sent; it decrypts the stored answer, and is stored nowhere."""
    request: bytes = field(repr=False)
    """Method, path and body: what must be the same again."""


class StoredResponse(msgspec.Struct, frozen=True):
    """An answer to give again."""

    status: int
    headers: dict[str, str]
    body: bytes
