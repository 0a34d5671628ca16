"""The compiled pattern of a set of secrets."""

from collections.abc import Iterable, Iterator
from typing import Final, Protocol

import re2

from runners.kit.secrets.forms import MIXED_LIMIT_CHARS, forms, sent_forms, written_forms
from runners.kit.secrets.job_secrets import SHORTEST_CHARS
from runners.kit.sensitive import HIDDEN

PATTERN_LIMIT_CHARS: Final = 100_000
"""Expressions are joined up to this size; RE2 refuses those that outgrow its memory."""
WHOLE_LIMIT_CHARS: Final = 8192
"""Longer secrets are replaced as plain text in their usual forms."""
MEMORY_LIMIT_BYTES: Final = 64 << 20
_HIDDEN_BYTES: Final = HIDDEN.encode()


class _Compiled(Protocol):
    def search(self, text: bytes, /) -> object | None: ...

    def subn(self, replacement: bytes, text: bytes, /) -> tuple[bytes, int]: ...


class SecretPattern:
    """Finds secrets in every form, and the beginnings of secrets where a text was cut."""

    def __init__(self, secrets: Iterable[str]) -> None:
        secrets = tuple(secrets)
        self._has_long = any(len(secret) > MIXED_LIMIT_CHARS for secret in secrets)
        short = [secret for secret in secrets if len(secret) <= WHOLE_LIMIT_CHARS]
        sources = list(_joined(map(forms, short)))
        self._compiled = tuple(map(_compile, sources))
        self._plain = tuple(
            form.encode()
            for secret in secrets
            if len(secret) > WHOLE_LIMIT_CHARS
            for form in _usual_forms(secret)
        )
        self._usual = tuple(form for secret in secrets for form in _usual_forms(secret))
        self.size_chars = sum(map(len, sources)) + sum(map(len, self._usual))

    def may_be_in(self, encoded: bytes) -> bool:
        """Whether any of the texts that were encoded as JSON can hold a secret."""
        # Forms that are looked for as a whole change when they are encoded once more.
        return self._has_long or any(
            compiled.search(encoded) is not None for compiled in self._compiled
        )

    def hide(self, text: bytes) -> tuple[bytes, int]:
        """The text without secrets, and how many there were."""
        total = 0
        for form in self._plain:
            total += text.count(form)
            text = text.replace(form, _HIDDEN_BYTES)
        for compiled in self._compiled:
            text, count = compiled.subn(_HIDDEN_BYTES, text)
            total += count
        return text, total

    def hide_until(self, text: bytes, limit: int) -> tuple[bytes, int, int]:
        """The text without secrets up to the limit, how many there were, and how far it went.

        It stops before a secret that the limit would cut, or behind it when it begins the text.
        """
        hidden, count = self.hide(text)
        return hidden, count, len(text) or limit

    def without_beginning(self, text: str) -> str:
        """The text without the piece of a secret that it ends in the middle of."""
        for form in self._usual:
            for size in range(min(len(form) - 1, len(text)), SHORTEST_CHARS - 1, -1):
                if text.endswith(form[:size]):
                    return text[:-size] + HIDDEN
        return text


def _usual_forms(secret: str) -> Iterator[str]:
    # Bytes of the environment that are no UTF-8 come as surrogates, which no text can hold.
    secret = secret.encode("utf-8", "replace").decode()
    yield from dict.fromkeys(form for sent in sent_forms(secret) for form in written_forms(sent))


def _joined(sources: Iterable[str]) -> Iterator[str]:
    joined = ""
    for source in sources:
        if joined and len(joined) + len(source) > PATTERN_LIMIT_CHARS:
            yield joined
            joined = ""
        joined = f"{joined}|{source}" if joined else source
    if joined:
        yield joined


def _compile(source: str) -> _Compiled:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = MEMORY_LIMIT_BYTES
    options.log_errors = False
    compiled: _Compiled = re2.compile(source.encode("latin-1"), options)
    return compiled
