"""Pieces of a secret that turn up alone: where others cut it, and what they make of it."""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple
from urllib.parse import unquote, unquote_plus

SHORTEST_DECODED_CHARS: Final = 4
FRAGMENT_CHARS: Final = 8
"""Shorter fragments of a URL are words like `user`."""
WHOLE_FROM_CHARS: Final = 1024
"""Longer secrets have hundreds of fragments by chance, and are looked for as a whole."""
END_CHARS: Final = 16
"""What previews show of a long value."""

_SPLITS: Final = re.compile("[&=#?;]")
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^/]*/?")
"""A scheme and a host: hiding them would hide every address of that host."""
_COMMON_END: Final = re.compile("://|-----")
"""Of an address, and of each key in PEM: many have them."""
_FIELD_NAME: Final = re.compile(r"[A-Za-z_.\-]{1,15}=")
_JWT: Final = re.compile(r"eyJ[\w\-]+\.([\w\-]{16,})\.([\w\-]{16,})")


class Cut(NamedTuple):
    """One way in which pieces come about."""

    name: str
    of: Callable[[str], Iterator[str]]


def pieces(secret: str) -> tuple[str, ...]:
    """The secret, and its pieces that are secret by themselves."""
    cuts = CUTS if len(secret) <= WHOLE_FROM_CHARS else ()
    found = (piece for cut in cuts for piece in cut.of(secret))
    return tuple(dict.fromkeys((secret, *found)))


def decoded(secret: str) -> Iterator[str]:
    """What a target makes of a secret that came as it is where it expected it encoded."""
    for text in (unquote(secret), unquote_plus(secret), secret.replace("+", " ")):
        if len(text.strip()) >= SHORTEST_DECODED_CHARS:
            yield text.strip()


def _fragments(secret: str) -> Iterator[str]:
    """What stands between the signs at which URLs and forms are taken apart."""
    start = 0
    for end in (*(split.start() for split in _SPLITS.finditer(secret)), len(secret)):
        fragment = secret[start:end]
        named = _FIELD_NAME.fullmatch(secret, start, end + 1)
        if len(fragment) >= FRAGMENT_CHARS and not named and not _ADDRESS.fullmatch(fragment):
            yield fragment
        start = end + 1


def _ends(secret: str) -> Iterator[str]:
    if len(secret) >= 2 * END_CHARS:
        ends = (secret[:END_CHARS], secret[-END_CHARS:])
        yield from (end.strip() for end in ends if not _COMMON_END.search(end))


def _jwt_parts(secret: str) -> Iterator[str]:
    """Claims and signature; the header is the same in many."""
    token = _JWT.fullmatch(secret)
    if token is not None:
        yield from token.groups()


CUTS: tuple[Cut, ...] = (
    Cut("decoded once more", decoded),
    Cut("fragments of a URL", _fragments),
    Cut("ends in previews", _ends),
    Cut("parts of a JWT", _jwt_parts),
)
