"""Takes memory without end, in many processes, each of which is small."""

import os, time

held = []
while True:
    if os.fork() == 0:
        held.append(b"x" * 30_000_000)
        time.sleep(600)
    time.sleep(0.02)
