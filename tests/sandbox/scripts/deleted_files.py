"""Fills files that it has deleted and keeps open, and stays."""

import os
import time

held = []
for number in range(8):
    held.append(open(str(number), "wb"))
    os.unlink(str(number))
    held[-1].write(b"x" * 10_000_000)
    held[-1].flush()
time.sleep(150)
