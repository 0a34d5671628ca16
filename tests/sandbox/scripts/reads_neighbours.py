"""Looks for another run's secret, in all environments and all folders of runs."""

import os
import glob
import json
import time

found = []
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        with open(path, "rb") as file:
            found += [path] if b"neighbours-secret" in file.read() else []
    except OSError:
        pass
for path in glob.glob("/tmp/picket-run-*/*"):
    if os.path.basename(path) == "work":  # the rest is what agents of other tests keep there
        found.append(path)
os.write(3, json.dumps(found).encode() + b"\n")
