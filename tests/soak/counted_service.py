"""`python -m tests.soak.counted_service`: the quick service, which counts its tasks on SIGUSR1."""

import asyncio
import json
import signal
import sys

from tests.faults import quick_service


def main() -> int:
    """The service's own `main`, in a hurry."""
    # The handler runs on the main thread, between two steps of the loop that runs there.
    signal.signal(signal.SIGUSR1, lambda *_: _tell())
    return quick_service.main()


def _tell() -> None:
    line = json.dumps({"event": "tasks.counted", "count": len(asyncio.all_tasks())})
    print(line, flush=True)  # noqa: T201 - its log


if __name__ == "__main__":
    sys.exit(main())
