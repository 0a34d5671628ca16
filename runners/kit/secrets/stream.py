"""Hide secrets in a stream of bytes that comes in chunks, with bounded memory."""

from typing import Final

from runners.kit.secrets.pattern import SecretPattern

BLOCK_BYTES: Final = 1 << 20
"""How much is looked through at a time: the memory that a stream takes, some times over."""
OVERLAP_BYTES: Final = 1 << 16
"""What is looked at beyond a block's end; longer occurrences are not found over it."""


class HidingStream:
    """Passes bytes on without secrets; the cuts between chunks change nothing of the result."""

    def __init__(self, pattern: SecretPattern) -> None:
        self._pattern = pattern
        self._held = bytearray()
        self.replacements = 0

    def feed(self, chunk: bytes) -> bytes:
        """What is clean by now; often nothing."""
        self._held += chunk
        clean = bytearray()
        while len(self._held) >= BLOCK_BYTES + OVERLAP_BYTES:
            block = bytes(self._held[: BLOCK_BYTES + OVERLAP_BYTES])
            hidden, used = self._hidden(block, limit=BLOCK_BYTES)
            clean += hidden
            del self._held[:used]
        return bytes(clean)

    def finish(self) -> bytes:
        """The rest; nothing may be fed afterwards."""
        rest, _ = self._hidden(bytes(self._held), limit=len(self._held))
        self._held.clear()
        return rest

    def _hidden(self, block: bytes, *, limit: int) -> tuple[bytes, int]:
        hidden, count, used = self._pattern.hide_until(block, limit)
        self.replacements += count
        return hidden, used
