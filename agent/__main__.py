"""`python -m agent`: the agent in the foreground, set up by its environment variables.

The idle agent stays small: what its libraries load without need stays out of the process, unless
structlog and aiohttp were imported before.
"""

import gc
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

EXIT_CRASHED: Final = 1
EXIT_BAD_SETTINGS: Final = 2
_NEW_OBJECTS_PER_COLLECTION: Final = 20_000
_THREADS_TURN_S: Final = 0.001
"""By default a thread that looks for secrets keeps the event loop waiting for 5 ms a time."""


def main(environ: Mapping[str, str] | None = None) -> int:
    """Run until asked to stop; the exit code: 0 stopped, 1 crashed, 2 cannot start, 3 refused."""
    with undisturbed():
        load_libraries()
        # Only now, because these import what must be loaded leanly first.
        import structlog  # noqa: PLC0415
        import uvloop  # noqa: PLC0415

        from agent import crash_hooks  # noqa: PLC0415
        from agent.app import run  # noqa: PLC0415
        from agent.settings import BadSettingsError, read_settings  # noqa: PLC0415
        from agent.telemetry.http_server import PortUnavailableError  # noqa: PLC0415
        from runners.net.tls.ca_roots import NoRootsError, system_bundle  # noqa: PLC0415

    try:
        crash_hooks.install_crash_hooks(os.environ if environ is None else environ)
        settings = read_settings(environ)
        system_bundle()  # raises before anything is claimed that would need it
        # Runs leave few cycles behind; by default it would look for them after every tenth run.
        gc.set_threshold(_NEW_OBJECTS_PER_COLLECTION)
        sys.setswitchinterval(_THREADS_TURN_S)
        return uvloop.run(run(settings))
    except (BadSettingsError, NoRootsError, PortUnavailableError) as bad:
        sys.stderr.write(f"{bad}\n")
        return EXIT_BAD_SETTINGS
    except Exception:  # noqa: BLE001 - last resort: a crash is a log line too, without secrets
        structlog.get_logger(__name__).exception("agent.crashed")
        return EXIT_CRASHED


_OPTIONAL: Final = ("rich", "aiodns")
"""structlog takes rich for tracebacks in colour, aiohttp takes aiodns for names, both only if they
can be imported. The agent uses neither: 4 MB."""
_ROOTS: Final = {"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.devnull}


def load_libraries() -> None:
    """Import the large libraries without what the agent does not use of them."""
    for name in _OPTIONAL:
        # None makes the import fail as if the library were not installed.
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]
    # The scanner imports it where there is something to open; aiohttp would ask services for it.
    with _without_roots(), _as_if_missing("brotli"):
        # aiohttp reads all roots into a context of its own at import; the agent brings its own
        # context wherever there is TLS: 2.5 MB.
        __import__("aiohttp")
    __import__("structlog")


@contextmanager
def undisturbed() -> Iterator[None]:
    """For imports. What they make stays: to look through it for garbage is a third of a start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def _as_if_missing(name: str) -> Iterator[None]:
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


@contextmanager
def _without_roots() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in _ROOTS}
    os.environ.update(_ROOTS)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


if __name__ == "__main__":
    sys.exit(main())
