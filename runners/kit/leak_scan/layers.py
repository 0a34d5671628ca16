"""Look for secrets in a stretch of bytes, through all encodings that lie on each other."""

from collections.abc import Callable
from typing import Final

from runners.kit.leak_scan.blocks import Blocks
from runners.kit.leak_scan.escapes import unescaped, unquoted_printable
from runners.kit.leak_scan.leak import ScanLimits
from runners.kit.leak_scan.needles import Needles

_LAYERS: Final = 7
"""Three compositions of escapes, and those of the reports and traces around them."""
_GROWTH: Final = 6
"""So many times its length a secret takes in quoted-printable that is escaped once more."""
_LEAST_REACH_BYTES: Final = 64

BodyScan = Callable[[bytes, int], bool]
"""Whether a body that was decoded whole holds a secret; the number says how deep it lies."""


class Layers:
    """Decodes one layer after the other and looks at each."""

    def __init__(self, needles: Needles, limits: ScanLimits, body: BodyScan) -> None:
        self._needles = needles
        self._blocks = Blocks(needles)
        self._limits = limits
        self._reach_bytes = _GROWTH * needles.longest_bytes + _LEAST_REACH_BYTES
        self._body = body

    def hold(self, text: bytes, depth: int) -> bool:
        """Whether a secret is in it, as it is, as UTF-16 or as quoted-printable.

        Raises:
            UnscannableError: it holds more than the limits allow.
        """
        if self._needles.are_certainly_in(text):
            return True
        text = self._blocks.readable(text)
        if self._held_in_layers(text, depth):
            return True
        if b"\0" in text and self._held_in_layers(text.translate(None, b"\0"), depth):
            return True
        plain = unquoted_printable(text, reach_bytes=self._reach_bytes)
        return bool(plain) and self._held_in_layers(plain, depth)

    def _held_in_layers(self, text: bytes, depth: int) -> bool:
        for _ in range(_LAYERS):
            if self._needles.are_in(text) or self._are_in_wide(text):
                return True
            outer, text = text, unescaped(text)
            if outer == text:
                break
        if depth >= self._limits.depth:
            return False
        return self._held_in_blocks(text, depth)

    def _are_in_wide(self, text: bytes) -> bool:
        """Whether one is in what a text holds in wide characters, whose zeros were escaped."""
        return b"\0" in text and self._needles.are_in(text.translate(None, b"\0"))

    def _held_in_blocks(self, text: bytes, depth: int) -> bool:
        if self._blocks.hold_alone(text):
            return True
        runs = self._blocks.runs(text)
        decoded = self._blocks.decoded(text, runs)
        if decoded and self.hold(decoded, depth + 1):
            return True
        return any(self._body(body, depth + 1) for body in self._blocks.packed(runs))
