"""Log lines, without secrets."""

import logging
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, TextIO

import msgspec
import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.typing import EventDict, Processor

from redaction.policy import HIDDEN, select_usable
from redaction.replacer import SecretPattern

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
        words = select_usable(secrets)
        self._secrets = _compile_pattern(words) if words else None

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
def _compile_pattern(words: tuple[str, ...]) -> SecretPattern:
    """Logs, pings and reports look for the same secrets; a compiled pattern holds up to a MB."""
    return SecretPattern(words)


class LogLevel(StrEnum):
    """The least important lines that are written."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    LOG = "LOG"
    """Another word for INFO."""
    WARN = "WARN"
    ERROR = "ERROR"


class LogFormat(StrEnum):
    """How a line is written."""

    JSON = "json"
    CONSOLE = "console"


OnError = Callable[[str, BaseException | None], None]
"""Called with the constant part of an error-level line, and its exception if it has one."""
_STDLIB_LEVELS: Final = {
    LogLevel.DEBUG: logging.DEBUG,
    LogLevel.INFO: logging.INFO,
    LogLevel.LOG: logging.INFO,
    LogLevel.WARN: logging.WARNING,
    LogLevel.ERROR: logging.ERROR,
}
_LEVEL_NAMES: Final = {
    "warning": "warn",
    "exception": "error",
    "critical": "error",
    "fatal": "error",
}
_UNTOUCHED: Final = frozenset({"ts", "level", "exc_info", "_record", "_from_structlog"})
_CHATTY: Final = {"asyncio": logging.INFO, "aiohttp.access": logging.WARNING}


def configure(
    level: LogLevel,
    log_format: LogFormat,
    *,
    secrets: Iterable[str] = (),
    stream: TextIO | None = None,
    on_error: OnError | None = None,
) -> None:
    """Set how this process logs; the standard library's loggers go the same way.

    The `secrets` appear in no line, in no encoding. Without a `stream` lines go to standard
    output. `on_error` is called for each line of level error.
    """
    target = _Stream(stream or sys.stdout)
    front: list[Processor] = [structlog.contextvars.merge_contextvars, _stamp]
    if on_error is not None:
        front.append(_ErrorTap(on_error))
    front.append(_Redaction(Redactor(secrets)))
    back = _build_renderers(log_format, colors=target.isatty())
    structlog.configure(
        processors=[*front, *back],
        wrapper_class=structlog.make_filtering_bound_logger(_STDLIB_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(target),  # type: ignore[arg-type]
        cache_logger_on_first_use=True,
    )
    _route_standard_library(_STDLIB_LEVELS[level], front, back, target)


def default_format(stream: TextIO) -> LogFormat:
    """What `LOG_FORMAT` is when nobody sets it: console on a terminal."""
    return LogFormat.CONSOLE if stream.isatty() else LogFormat.JSON


def _route_standard_library(
    level: int, front: list[Processor], back: list[Processor], target: "_Stream"
) -> None:
    handler = logging.StreamHandler(target)
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=front,
            processors=[ProcessorFormatter.remove_processors_meta, *back],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name, least in _CHATTY.items():
        logging.getLogger(name).setLevel(max(level, least))


def _build_renderers(log_format: LogFormat, *, colors: bool) -> list[Processor]:
    if log_format is LogFormat.CONSOLE:
        return [
            structlog.dev.ConsoleRenderer(
                colors=colors,
                timestamp_key="ts",
                exception_formatter=structlog.dev.plain_traceback,
            )
        ]
    return [structlog.processors.JSONRenderer(serializer=_encode_json)]


def _encode_json(line: EventDict, **_ignored: object) -> str:
    return msgspec.json.encode(line, enc_hook=str).decode()


def _stamp(_logger: object, method: str, line: EventDict) -> EventDict:
    """Time and level first, as a reader expects them."""
    ts = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    event = line.pop("event", "")
    return {"ts": ts, "level": _LEVEL_NAMES.get(method, method), "event": event, **line}


class _ErrorTap:
    """Passes error-level lines on, before anything is turned into text."""

    def __init__(self, on_error: OnError) -> None:
        self._on_error = on_error

    def __call__(self, _logger: object, _method: str, line: EventDict) -> EventDict:
        if line["level"] == "error":
            record = line.get("_record")
            # A record's template is constant; the formatted text may hold anything.
            event = record.msg if isinstance(record, logging.LogRecord) else line["event"]
            self._on_error(str(event), _find_error(line.get("exc_info")))
        return line


class _Redaction:
    """Masks secrets in all fields; an exception becomes text here, so that it is masked too."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def __call__(self, logger: Any, method: str, line: EventDict) -> EventDict:
        if line.get("exc_info"):
            line = structlog.processors.format_exc_info(logger, method, line)
        field = self._redactor.field
        return {
            name: value if name in _UNTOUCHED else field(name, value)
            for name, value in line.items()
        }


def _find_error(exc_info: object) -> BaseException | None:
    """The exception of a line. None: it has none."""
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        return exc_info[1] if len(exc_info) > 1 else None
    return sys.exc_info()[1] if exc_info else None


class _Stream:
    """A text stream whose loss never stops the agent: what cannot be written is lost."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except (OSError, ValueError):
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            return

    def isatty(self) -> bool:
        return self._stream.isatty()
