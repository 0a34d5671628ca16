"""Where encodings lie over one another: signs of them, and what is read once they are undone.

Encodings that change a text as a whole, or every character, cannot all be listed when several lie
over one another. So a text is searched for their signs, which are rare, and what stands around a
sign is decoded and searched like the text itself.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from runners.kit.secrets import regrouping, unescaping
from runners.kit.secrets.compiled import found_in
from runners.kit.secrets.view import View


class Undoing(NamedTuple):
    """One kind of encoding, by its sign."""

    name: str
    sign: str
    """An expression for RE2."""
    undone: Callable[[bytes], Iterator[View]]


UNDOINGS: tuple[Undoing, ...] = (
    Undoing("percent", unescaping.PERCENT_SIGN, unescaping.unescaped),
    Undoing("entities", unescaping.ENTITY_SIGN, unescaping.unescaped),
    Undoing("escapes", unescaping.ESCAPE_SIGN, unescaping.unescaped),
    Undoing("CSS", unescaping.CSS_SIGN, unescaping.uncss),
    Undoing("quoted-printable", unescaping.PRINTABLE_SIGN, unescaping.unprintable),
    Undoing("colours and soft line ends", unescaping.SPLICE_SIGN, unescaping.spliced),
    Undoing("base64", regrouping.BASE64_SIGN, regrouping.unbase64),
    Undoing("hexadecimal", regrouping.HEX_SIGN, regrouping.unhex),
    Undoing("wide characters", regrouping.WIDE_SIGN, regrouping.narrowed),
)


def sign_runs() -> tuple[str, ...]:
    """Expressions for runs of signs: of base64, and of everything else.

    In one expression the places at which base64 may begin would multiply the states of the others.
    """
    base64 = [undoing.sign for undoing in UNDOINGS if undoing.undone is regrouping.unbase64]
    others = [undoing.sign for undoing in UNDOINGS if undoing.sign not in base64]
    return tuple(f"(?:{'|'.join(signs)})+" for signs in (base64, others) if signs)


def views(text: bytes) -> Iterator[View]:
    """What the text reads in each encoding of which it has a sign."""
    seen = [undoing.undone for undoing in UNDOINGS if found_in(undoing.sign, text)]
    for undone in dict.fromkeys(seen):
        yield from undone(text)
