"""Hide secrets in a stream of bytes that comes in chunks, with bounded memory."""

from runners.kit.secrets.pattern import BLOCK_BYTES, SHOWN, SecretPattern


class HidingStream:
    """Passes bytes on without secrets; the cuts between chunks change nothing of the result."""

    def __init__(self, pattern: SecretPattern, *, shown: bytes = SHOWN) -> None:
        self._pattern = pattern
        self._shown = shown
        self._held = bytearray()
        self._carried = 0
        self.replacements = 0

    def feed(self, chunk: bytes) -> bytes:
        """What is clean by now; often nothing."""
        self._held += chunk
        clean = []
        while len(self._held) >= BLOCK_BYTES + self._pattern.overlap_bytes:
            block = bytes(self._held[: BLOCK_BYTES + self._pattern.overlap_bytes])
            clean.append(self._clean(block, limit=BLOCK_BYTES))
            del self._held[:BLOCK_BYTES]
        return b"".join(clean)

    def finish(self) -> bytes:
        """The rest; nothing may be fed afterwards."""
        rest = self._clean(bytes(self._held), limit=len(self._held))
        self._held.clear()
        return rest

    def _clean(self, block: bytes, *, limit: int) -> bytes:
        hidden = self._pattern.hide_block(
            block, limit=limit, carried=self._carried, shown=self._shown
        )
        self._carried = hidden.carried
        self.replacements += hidden.replacements
        return hidden.text
