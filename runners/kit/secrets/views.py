"""Where encodings lie over one another: signs of them, and what is read once they are undone.

Encodings that change a text as a whole, or every character, cannot all be listed when several lie
over one another. So a text is searched for their signs, which are rare, and what stands around a
sign is decoded and searched like the text itself.
"""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
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
    return tuple(runs for runs, _ in _together(UNDOINGS))


def views(text: bytes) -> Iterator[View]:
    """What the text reads in each encoding of which it has a sign."""
    likely = [all_of for runs, all_of in _together(UNDOINGS) if found_in(runs, text)]
    seen = [one.undone for one in chain.from_iterable(likely) if found_in(one.sign, text)]
    for undone in dict.fromkeys(seen):
        yield from undone(text)


@cache
def _together(undoings: tuple[Undoing, ...]) -> tuple[tuple[str, tuple[Undoing, ...]], ...]:
    """Those whose signs are looked for at once, after the expression for runs of these."""
    base64 = tuple(one for one in undoings if one.undone is regrouping.unbase64)
    others = tuple(one for one in undoings if one not in base64)
    return tuple((_runs(group), group) for group in (base64, others) if group)


def _runs(undoings: tuple[Undoing, ...]) -> str:
    return f"(?:{'|'.join(undoing.sign for undoing in undoings)})+"
