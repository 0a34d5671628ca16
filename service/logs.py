"""How log lines look: JSON for machines, colours for a terminal."""

import logging
import sys
from typing import Final

import msgspec
import structlog
from structlog.typing import Processor

from service.settings import LogFormat, LogLevel

_LEVELS: Final = {
    LogLevel.DEBUG: logging.DEBUG,
    LogLevel.INFO: logging.INFO,
    LogLevel.WARN: logging.WARNING,
    LogLevel.ERROR: logging.ERROR,
}
_CHATTY: Final = {
    "uvicorn": logging.ERROR,  # its warnings are about requests, and strangers send those
    "alembic": logging.WARNING,
    # What goes wrong with ClickHouse is raised, and logged once by who copies.
    "clickhouse_connect": logging.CRITICAL,
    "urllib3": logging.CRITICAL,
}


def configure(level: LogLevel, log_format: LogFormat) -> None:
    """Set how this process logs to standard output; the standard library goes the same way."""
    number = _LEVELS[level]
    front: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
    ]
    back = _renderers(log_format)
    structlog.configure(
        processors=[*front, *back],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
        cache_logger_on_first_use=False,
    )
    foreign = logging.StreamHandler(sys.stdout)
    foreign.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=front,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *back],
        )
    )
    logging.basicConfig(handlers=[foreign], level=number, force=True)
    for name, least in _CHATTY.items():
        logging.getLogger(name).setLevel(max(least, number))


def _renderers(log_format: LogFormat) -> list[Processor]:
    if log_format is LogFormat.CONSOLE:
        # Plain: structlog's own choice shows the values of locals, which may be keys.
        plain = structlog.dev.plain_traceback
        return [
            structlog.dev.ConsoleRenderer(colors=sys.stdout.isatty(), exception_formatter=plain)
        ]
    return [
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(serializer=_json),
    ]


def _json(event: object, **_: object) -> str:
    return msgspec.json.encode(event, enc_hook=str).decode()
