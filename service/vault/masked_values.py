"""What is sent back as it was shown: `HIDDEN` in the place of a stored text keeps that text.

So a body that was read by a key that only reads can be sent back by one that may write, and
`HIDDEN` itself is never stored as a password.
"""

from collections.abc import Callable, Iterator
from typing import Final

from service.http.errors import InvalidError
from service.vault.bodies import PAIRS, REQUESTS, Body, Path, replace_texts
from service.vault.encryption import DecryptionError
from service.vault.texts import HIDDEN, PROXY_CREDENTIALS, URL_CREDENTIALS

Stored = Callable[[], Body]
"""Opens the body whose place another one takes; raises `DecryptionError`."""
_PASSWORD: Final = ("basicAuth", "password")
_NONE_THERE: Final = "nothing is stored here. Send the value"


def restore_hidden(body: Body, stored: Stored | None) -> Body:
    """The body with what is stored where `HIDDEN` was sent. Nothing stored: there was none before.

    Raises:
        InvalidError: there is nothing to keep in such a place, or it cannot be read any more.
    """
    paths = list(_find_hidden(body))
    if not paths:
        return body
    before = _decrypt_stored(stored, paths[0])
    return replace_texts(body, [(path, _restore(body, before, path)) for path in paths])


def restore_proxy(address: str | None, stored: Callable[[], str | None] | None) -> str | None:
    """The address of a proxy with the stored credentials where `HIDDEN` was sent. None: direct."""
    if address is None or not PROXY_CREDENTIALS.are_hidden(address):
        return address
    try:
        before = stored() if stored else None
    except DecryptionError as problem:
        raise _error("proxyUrl", _explain(problem)) from problem
    whole = PROXY_CREDENTIALS.restore(before or "", address)
    if whole is None:
        raise _error("proxyUrl", _NONE_THERE)
    return whole


def _find_hidden(body: Body) -> Iterator[Path]:
    """Where `HIDDEN` was sent, locked or not: what is no longer locked keeps its value too."""
    for name in REQUESTS:
        yield from ((name, *path) for path in _find_in_request(body.get(name) or {}))


def _find_in_request(request: Body) -> Iterator[Path]:
    for pairs in PAIRS:
        for order, pair in enumerate(request.get(pairs, ())):
            if pair["value"] == HIDDEN:
                yield pairs, order, "value"
    if (request.get("basicAuth") or {}).get("password") == HIDDEN:
        yield _PASSWORD
    if URL_CREDENTIALS.are_hidden(request.get("url") or ""):
        yield ("url",)


def _decrypt_stored(stored: Stored | None, first: Path) -> Body:
    try:
        return stored() if stored else {}
    except DecryptionError as problem:
        raise _error(_format_path(first), _explain(problem)) from problem


def _restore(body: Body, before: Body, path: Path) -> str:
    """What `HIDDEN` stands for at a place."""
    name, *rest = path
    found = _restore_in_request(body[str(name)], before.get(str(name)) or {}, tuple(rest))
    if not found:
        raise _error(_format_path(path), _NONE_THERE)
    return found


def _restore_in_request(request: Body, before: Body, path: Path) -> str | None:
    match path:
        case ("url",):
            return URL_CREDENTIALS.restore(before.get("url") or "", request["url"])
        case (str(pairs), int(order), _):
            return _restore_in_pairs(request[pairs], before.get(pairs, ()), order)
        case _:
            password: str | None = (before.get("basicAuth") or {}).get("password")
            return password


def _restore_in_pairs(sent: list[Body], before: list[Body], order: int) -> str | None:
    """By its key; of several with one key by their order, as long as there are as many."""
    key = sent[order]["key"]
    orders = [place for place, pair in enumerate(sent) if pair["key"] == key]
    values: list[str] = [pair["value"] for pair in before if pair["key"] == key]
    return values[orders.index(order)] if len(values) == len(orders) else None


def _explain(problem: DecryptionError) -> str:
    return f"that can no longer be read: {problem}. Send the value"


def _error(field: str, why: str) -> InvalidError:
    return InvalidError(
        f'"{field}" holds {HIDDEN}, which keeps the stored value, and {why}.', keys=(field,)
    )


def _format_path(path: Path) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
