"""Leaves children that end at once to whoever takes them, and waits until none is there any more."""

import json
import os
import time

for _ in range(50):
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.wait()


def ended():
    found = 0
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
            found += fields[0] == "Z" and os.stat(f"/proc/{pid}").st_uid == os.getuid()
        except OSError:
            pass
    return found


until = time.monotonic() + 50
while (left := ended()) and time.monotonic() < until:
    time.sleep(0.05)
os.write(3, json.dumps(left).encode() + b"\n")
