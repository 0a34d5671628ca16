"""Look for secrets in small texts, one after the other, as the results of an agent are."""

from collections.abc import Iterable
from typing import Final

from runners.kit.leak_scan.layers import Layers
from runners.kit.leak_scan.leak import ScanLimits
from runners.kit.leak_scan.needles import Needles

_USUAL: Final = ScanLimits()


class TextScan:
    """Looks for the same secrets in one small text after the other."""

    def __init__(self, secrets: Iterable[str], *, limits: ScanLimits = _USUAL) -> None:
        self._needles = Needles(secrets)
        self._limits = limits
        self._layers = Layers(self._needles, limits, self._holds)

    def finds(self, text: bytes) -> bool:
        """Whether one of them is in it.

        Raises:
            UnscannableError: one could be in it and not be found.
        """
        return bool(self._needles) and self._layers.hold(text, 0)

    def _holds(self, body: bytes, depth: int) -> bool:
        # Only now: what opens archives is a megabyte that most agents never need.
        from runners.kit.leak_scan.scan import reading_of  # noqa: PLC0415

        return reading_of(self._needles, self._limits).holds(body, depth)
