"""Puts files where all may write, outside of its folder, and stays."""

import os
import tempfile
import time

for folder in ("/tmp", "/dev/shm", "/var/tmp"):
    if os.access(folder, os.W_OK):
        os.makedirs(own := tempfile.mkdtemp(dir=folder) + "/deep")
        for number in range(3):
            with open(f"{own}/{number}", "wb") as file:
                file.write(b"x" * 10_000_000)
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        file.write(b"x" * 10_000_000)
time.sleep(150)
