"""Secrets that stand as numbers in JSON: a text in their place would break it."""

from collections.abc import Iterable
from typing import Any, Final

import re2

_IN_PLACE: Final = b"0"


class Numbers:
    """Knows the secrets that are written as a number is."""

    def __init__(self, secrets: Iterable[str]) -> None:
        wanted = [secret for secret in secrets if secret.isascii() and secret.isdigit()]
        self.hint = "|".join(wanted)
        """What is there whenever such a number is, as an expression."""
        self._pattern = _compile(wanted) if wanted else None

    def hide(self, block: bytes) -> tuple[bytes, int]:
        """The JSON with other numbers in their place, and how many those were."""
        if self._pattern is None:
            return block, 0
        out, at, count = [], 0, 0
        match = self._pattern.search(block)
        while match is not None:
            out += [block[at : match.start(1)], _IN_PLACE]
            at, count = match.end(1), count + 1
            match = self._pattern.search(block, at)  # the comma behind is before the next, too
        return (b"".join((*out, block[at:])), count) if count else (block, 0)


def _compile(wanted: list[str]) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    digits = "|".join(wanted)
    source = rf"[:\[,]\s*(-?[0-9.]*(?:{digits})[0-9.eE+-]*)(?:\s|[,\]}}]|$)"
    return re2.compile(source.encode(), options)
