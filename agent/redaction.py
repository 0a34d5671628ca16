"""Takes keys, credentials and secrets out of text that people or the service will read."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from runners.kit.secrets.job_secrets import usable
from runners.kit.secrets.pattern import SecretPattern
from runners.kit.secrets.sensitive import HIDDEN

_KEY: Final = r"\b(?:pl|cu)_[A-Za-z0-9_\-]{6,}"
_SCHEME: Final = r"(?<=\bbearer )\S{4,}|(?<=\bbasic )[A-Za-z0-9+/=_\-]{6,}"
_USER_INFO: Final = r"(?<=://)[^/\s@'\"]+(?=@)"
_SHAPES: Final = re.compile(rf"(?i:{_KEY}|{_SCHEME}|{_USER_INFO})")
_HEADERS: Final = re.compile(
    r"(?i)(\b(?:(?:proxy-)?authorization|(?:set-)?cookie|x-api-key)['\"]?\s*[:=]\s*['\"]?)"
    r"[^\r\n'\"]+"
)
_HINTS: Final = re.compile(r"(?i)[cp][lu]_|bearer|basic|://|authorization|cookie|api-key")
"""Nothing of the shapes above is in a text without one of these."""
_TELLING_FIELD: Final = re.compile(
    r"(?i)(?:^|[_-])(?:authorization|cookie|password|passphrase|secret|api_?key|private_?key)s?$"
)


class Redactor:
    """Masks what must not be read: the shapes of our keys, credentials, and the given secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        words = usable(secrets)
        self._secrets = _pattern_of(words) if words else None

    def text(self, text: str) -> str:
        """The text with every secret masked."""
        if self._secrets is not None:
            text, _ = self._secrets.hide_in_text(text)
        if _HINTS.search(text) is None:
            return text
        return _SHAPES.sub(HIDDEN, _HEADERS.sub(rf"\1{HIDDEN}", text))

    def field(self, name: str, value: object) -> object:
        """A field of a log line, masked as a whole when its name tells that it is a secret."""
        if value is not None and _TELLING_FIELD.search(name):
            return HIDDEN
        return self.value(value)

    def value(self, value: object) -> object:
        """Any value of a log line; what is neither number nor container is read as text."""
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, Mapping):
            return {str(name): self.field(str(name), item) for name, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(item) for item in value]
        return self.text(str(value))


@lru_cache(maxsize=4)
def _pattern_of(words: tuple[str, ...]) -> SecretPattern:
    """Logs, pings and reports look for the same secrets; a compiled pattern holds up to a MB."""
    return SecretPattern(words)
