"""Writes more than any test allows, in files that are small enough each, deep down in folders."""

import os
import time

for number in range(1, 1001):
    os.makedirs("deeper", exist_ok=True)
    os.chdir("deeper") if number % 50 == 0 else None
    with open(str(number), "wb") as file:
        file.write(b"x" * 1_000_000)
    time.sleep(0.005)
