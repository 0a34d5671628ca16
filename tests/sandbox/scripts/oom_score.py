"""Tells how soon the system takes it where memory runs out, and tries to be taken later."""

import json
import os
import time

path = "/proc/self/oom_score_adj"
until = time.monotonic() + 30
while (before := int(open(path).read())) == int(open(f"/proc/{os.getppid()}/oom_score_adj").read()):
    if time.monotonic() > until:
        break
    time.sleep(0.01)
child = os.fork()
if child == 0:
    os.write(3, json.dumps({"own": before, "child": int(open(path).read())}).encode() + b"\n")
    os._exit(0)
os.wait()
