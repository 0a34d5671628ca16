"""Ends, but leaves its outputs open in somebody else's hands."""

import os
import time

if os.fork() == 0:
    os.setsid()
    time.sleep(600)
print("said")
