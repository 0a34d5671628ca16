"""What Python would write to standard error by itself takes the way of the logs, without secrets.

Threads that break, finalisers that raise, a crash before the settings are read: all of these print
tracebacks, and a traceback's last line holds values.
"""

import resource
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Final

import structlog

from agent.telemetry import logs

_KEY: Final = "API_KEY"
_SECRET_PREFIX: Final = "SERVICE_SECRET_"  # noqa: S105 - a name, no password
_PROXIES: Final = frozenset({"http_proxy", "https_proxy"})

log = structlog.get_logger(__name__)


def install_crash_hooks(environ: Mapping[str, str]) -> None:
    """Let nothing of these values out until the settings are read, and no picture of memory."""
    logs.configure(
        logs.LogLevel.INFO, logs.default_format(sys.stdout), secrets=likely_secrets(environ)
    )
    sys.excepthook = _log_crash
    sys.unraisablehook = _log_finaliser
    threading.excepthook = _log_thread
    with suppress(OSError, ValueError):  # where it is refused, there was none before either
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def likely_secrets(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables with a secret's name; the settings have not been read yet."""
    return tuple(
        value
        for name, value in environ.items()
        if name == _KEY or name.startswith(_SECRET_PREFIX) or name.lower() in _PROXIES
    )


def _log_crash(
    kind: type[BaseException], problem: BaseException, trace: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    log.error("agent.crashed", exc_info=(kind, problem, trace))


def _log_thread(broke: threading.ExceptHookArgs) -> None:
    if broke.exc_value is not None and not issubclass(broke.exc_type, SystemExit):
        problem = (broke.exc_type, broke.exc_value, broke.exc_traceback)
        log.error("thread.broke", exc_info=problem)


def _log_finaliser(broke: "sys.UnraisableHookArgs") -> None:
    if broke.exc_value is not None:
        log.error(
            "finaliser.broke", exc_info=(broke.exc_type, broke.exc_value, broke.exc_traceback)
        )
