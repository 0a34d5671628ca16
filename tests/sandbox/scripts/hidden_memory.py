"""Fills memory that has no name and is never mapped, and stays."""

import os
import time

files = [os.memfd_create("hidden") for _ in range(8)]
for file in files:
    for _ in range(50):
        os.write(file, b"x" * 1_000_000)
time.sleep(150)
