"""Fills memory that has no name and is never mapped, and stays."""

import os
import time

file = os.memfd_create("hidden")
for _ in range(400):
    os.write(file, b"x" * 1_000_000)
time.sleep(150)
