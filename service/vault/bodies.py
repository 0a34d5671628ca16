"""Bodies of checks and groups as they are stored: what is secret in them stands apart, encrypted.

What is left in its place is what keys are shown that only read: `HIDDEN`, of a URL in the place of
its credentials.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from service.vault.encryption import DecryptionError, Place, Vault
from service.vault.texts import HIDDEN, URL_CREDENTIALS

Body = Mapping[str, Any]
Bodies = Mapping[str, Body | None]
"""The bodies of one row, by column. None: the column is empty."""

CLEAR: Final = b"\0"
"""Marks a row whose secrets an earlier version left in the body; no ciphertext begins with it."""
REQUESTS: Final = ("request", "apiCheckDefaults")
"""Fields of bodies that may hold secrets."""
PAIRS: Final = ("headers", "queryParameters")
"""Lists of keys and values in these."""
Path = tuple[str | int, ...]
"""Leads to a text in a body, field by field."""


class _Secret(NamedTuple):
    path: Path
    text: str


class _FoundSecret(NamedTuple):
    path: Path
    text: str
    shown: str
    """What is left in its place."""


def encrypt(
    bodies: Bodies, vault: Vault, place: Place
) -> tuple[dict[str, Body | None], bytes | None]:
    """The bodies without what is secret in them, and that, encrypted. None: nothing is."""
    found = [one for column, body in bodies.items() for one in _find_secrets(column, body)]
    if not found:
        return dict(bodies), None
    bare = replace_texts(bodies, ((one.path, one.shown) for one in found))
    secrets = [_Secret(one.path, one.text) for one in found]
    return bare, vault.encrypt(msgspec.json.encode(secrets).decode(), place)


def decrypt(bodies: Bodies, secrets: bytes | None, vault: Vault, place: Place) -> Bodies:
    """The bodies whole. No secrets: they are that already.

    Raises:
        DecryptionError: the secrets were changed, or belong to another row or to other bodies.
    """
    if secrets is None or secrets == CLEAR:
        return bodies
    found = msgspec.json.decode(vault.decrypt(secrets, place), type=list[_Secret])
    try:
        return replace_texts(bodies, found)
    except (LookupError, TypeError, ValueError) as problem:
        raise DecryptionError("it does not fit what is stored beside it") from problem


def _find_secrets(column: str, body: Body | None) -> Iterator[_FoundSecret]:
    for name in REQUESTS:
        request = (body or {}).get(name)
        if request:
            yield from (
                one._replace(path=(column, name, *one.path)) for one in _find_in_request(request)
            )


def _find_in_request(request: Body) -> Iterator[_FoundSecret]:
    """What of a check's request, or of what a group adds to it, is secret."""
    for name in PAIRS:
        for order, pair in enumerate(request.get(name, ())):
            if pair.get("locked") and pair["value"]:
                yield _FoundSecret((name, order, "value"), pair["value"], HIDDEN)
    password = (request.get("basicAuth") or {}).get("password")
    if password:
        yield _FoundSecret(("basicAuth", "password"), password, HIDDEN)
    url = request.get("url") or ""
    if (shown := URL_CREDENTIALS.hide(url)) != url:
        yield _FoundSecret(("url",), url, shown)


def replace_texts(body: Mapping[str, Any], texts: Iterable[tuple[Path, str]]) -> dict[str, Any]:
    """A copy of the body, or of several, with these texts in it."""
    whole: dict[str, Any] = dict(body)
    for path, text in texts:
        whole = _replace_text(whole, path, text)
    return whole


def _replace_text(part: Any, path: Path, text: str) -> Any:
    """A copy of what lies on the path, since the rest may be large."""
    copy: Any = list(part) if isinstance(part, list) else dict(part)
    step, *rest = path
    copy[step] = _replace_text(part[step], tuple(rest), text) if rest else text
    return copy
