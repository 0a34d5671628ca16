"""A process that counts its tasks whenever it gets SIGUSR1."""

import asyncio
import json
import os
import signal
import sys


def tell_tasks_when_asked() -> None:
    """Print how many tasks there are, and what each is, as a line of the log."""
    # The handler runs on the main thread, between two steps of the loop that runs there.
    signal.signal(signal.SIGUSR1, lambda *_: _tell())


def _tell() -> None:
    tasks = sorted(f"{one.get_name()} {one.get_coro()!r}" for one in asyncio.all_tasks())
    line = json.dumps({"event": "tasks.counted", "count": len(tasks), "tasks": tasks})
    os.write(sys.stdout.fileno(), line.encode() + b"\n")  # `print` cannot be interrupted by itself
