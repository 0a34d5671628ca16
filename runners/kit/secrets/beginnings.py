"""Beginnings of secrets that were typed letter by letter, as pages tell each state of a field.

Each form finds the longest beginning at once: one a beginning would be sixty for a secret.
"""

from collections.abc import Iterator
from typing import Final

from runners.kit.secrets import whole
from runners.kit.secrets.characters import alike, each_mixed, mixed
from runners.kit.secrets.following import Form, char_parts
from runners.kit.secrets.forms import whole_written
from runners.kit.secrets.job_secrets import beginning_of

_MOST_CHARS: Final = 1024
"""Nobody types longer ones."""


class Beginnings:
    """Of one secret, from the shortest that is looked for to nearly all of it."""

    def __init__(self, secret: str) -> None:
        self._least = beginning_of(secret) or secret
        self._secret = secret[:_MOST_CHARS]

    def text_cores(self) -> Iterator[str]:
        """What is found wherever one of the text forms is."""
        yield mixed(self._least)

    def whole_cores(self) -> Iterator[str]:
        """Of which one is found wherever one of the whole forms is."""
        written = whole_written(self._least)
        for coding in whole.CODINGS:
            yield from coding.of(self._least, written)

    def text_forms(self) -> Iterator[Form]:
        """Character by character."""
        text = alike(self._secret)
        parts = tuple(char_parts(text, each_mixed(text)))
        yield Form(parts, least=len(alike(self._least)))

    def whole_forms(self) -> Iterator[Form]:
        """Where an encoding changes all of it at once."""
        for codec in whole.WIDE_CODECS:
            chars = tuple(whole.byte_parts(_bytes(char, codec) for char in self._secret))
            yield Form(chars, least=len(self._least))
        for codec in whole.WIDE_CODECS[:2]:
            encoded, least = _bytes(self._secret, codec), len(_bytes(self._least, codec))
            yield from _base64(encoded, least=least)
            if not self._secret.isascii():  # the zeros are a sign of ASCII
                yield Form(tuple(whole.hex_parts(encoded)), least=least)
        for encoded, least in self._written():
            yield from _base64(encoded, least=least)
            yield Form(tuple(whole.hex_parts(encoded)), least=least)

    def _written(self) -> Iterator[tuple[bytes, int]]:
        """What is encoded, and how much of it the shortest beginning is."""
        beginnings = whole_written(self._least)
        for encoded in whole_written(self._secret):
            sizes = [len(one) for one in beginnings if encoded.startswith(one)]
            if sizes:
                yield encoded, min(sizes)


def _base64(encoded: bytes, *, least: int) -> Iterator[Form]:
    for offset, (letters, _) in enumerate(whole.base64_letters(encoded)):
        filled = (offset + least) * 8 // 6 - whole.BASE64_HEADS[offset]
        parts = tuple(whole.letter_parts(letters))
        yield Form(parts, least=filled, after=f"{whole.BASE64_EDGE}?")


def _bytes(text: str, codec: str) -> bytes:
    return text.encode(codec, "surrogatepass")
