"""`python -m agent`: the agent in the foreground, set up by its environment variables."""

import gc
import os
import sys
from collections.abc import Mapping
from typing import Final

from agent import lean

EXIT_CRASHED: Final = 1
EXIT_BAD_SETTINGS: Final = 2
_NEW_OBJECTS_PER_COLLECTION: Final = 20_000
_THREADS_TURN_S: Final = 0.001
"""By default a thread that looks for secrets keeps the event loop waiting for 5 ms a time."""


def main(environ: Mapping[str, str] | None = None) -> int:
    """Live until told to stop; the exit code: 0 stopped, 1 crashed, 2 cannot start, 3 refused."""
    with lean.undisturbed():
        lean.load_libraries()
        # Only now, because these import what must be loaded leanly first.
        import structlog  # noqa: PLC0415
        import uvloop  # noqa: PLC0415

        from agent import last_words  # noqa: PLC0415
        from agent.app import run  # noqa: PLC0415
        from agent.ports import PortUnavailableError  # noqa: PLC0415
        from agent.settings import BadSettingsError, read_settings  # noqa: PLC0415
        from runners.kit.http.roots import NoRootsError, system_bundle  # noqa: PLC0415

    try:
        last_words.guard(os.environ if environ is None else environ)
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


if __name__ == "__main__":
    sys.exit(main())
