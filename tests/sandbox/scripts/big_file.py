"""Writes one file until it may not."""

import os
import signal

signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
with open("big", "wb") as file:
    while True:
        file.write(b"x" * 1_000_000)
        file.flush()
