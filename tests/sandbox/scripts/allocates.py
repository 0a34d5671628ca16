"""Takes more memory than any test allows, in many processes, each of which is small."""

import os
import time

held = []
for _ in range(100):
    if os.fork() == 0:
        held.append(b"x" * 30_000_000)
        time.sleep(150)
    time.sleep(0.02)
