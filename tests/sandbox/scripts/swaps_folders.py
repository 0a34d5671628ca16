"""Tries to put a link where its run has a folder, and a folder of its own beside it."""

import json
import os

work = os.getcwd()
tries = {
    "away": lambda: os.rename(work, f"{work}-2"),
    "beside": lambda: os.symlink("/etc", os.path.join(work, "..", "link")),
    "closed": lambda: os.chmod(os.path.dirname(work), 0o777),
    "listed": lambda: os.listdir(".."),
}
told = {}
for name, attempt in tries.items():
    try:
        attempt()
        told[name] = "done"
    except OSError as problem:
        told[name] = type(problem).__name__
open("own", "w").write("x")
os.write(3, json.dumps(told).encode() + b"\n")
