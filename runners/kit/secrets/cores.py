"""Short parts of a secret's forms: where none of them is, there is none of the forms.

A whole form has hundreds of ways of being written; a few characters of it are found with a small
part of the states and of the memory, and only around them the forms themselves are looked for.
"""

from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from runners.kit.secrets import whole
from runners.kit.secrets.backslashes import encodings
from runners.kit.secrets.bricks import LETTERS_AND_DIGITS
from runners.kit.secrets.characters import alike, mixed
from runners.kit.secrets.compiled import found_in
from runners.kit.secrets.forms import whole_texts
from runners.kit.secrets.pieces import pieces
from runners.kit.secrets.views import sign_runs

CORE_CHARS: Final = 6
"""Of random letters so many are never there by chance."""


def text_cores(secret: str) -> Iterator[str]:
    """Expressions of which one is found in each form that is written character by character."""
    yield from (mixed(_core(alike(piece))) for piece in pieces(secret))


def whole_cores(secret: str) -> Iterator[str]:
    """The same for encodings that change all at once, where no sign tells of them."""
    for text in whole_texts(secret):
        for coding in whole.CODINGS:
            yield from _encoded_core(coding, secret, text)


def _encoded_core(coding: whole.Coding, secret: str, text: str) -> Iterator[str]:
    """Nothing where a sign of the encoding tells of the form."""
    written = encodings(text)
    if all(_has_sign(one) for encoded in written for one in coding.plainly(secret, encoded)):
        return
    if coding.has_gaps:
        yield from coding.of(secret, written)
    else:
        yield from coding.of(_core(secret), encodings(_core(text)))


def _has_sign(text: bytes) -> bool:
    return any(found_in(sign, text) for sign in sign_runs())


def _core(text: str) -> str:
    """The part with the fewest characters that are written in several ways; of these the last."""
    if len(text) <= CORE_CHARS:
        return text
    many = [0, *accumulate(char not in LETTERS_AND_DIGITS for char in text)]
    starts = range(len(text) - CORE_CHARS + 1)
    start = min(starts, key=lambda at: (many[at + CORE_CHARS] - many[at], -at))
    return text[start : start + CORE_CHARS]
