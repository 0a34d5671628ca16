"""Sends SIGKILL to everybody, and to the agent by its number."""

import os
import signal

for pid in (os.getppid(), -1):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError as problem:
        os.write(3, f'"{type(problem).__name__}"\n'.encode())
