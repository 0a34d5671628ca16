"""Tells what it is allowed."""

import os
import json
import resource

status = dict(
    line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line
)
wanted = ("CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs", "Groups")
limits = {
    name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[1]
    for name in ("FSIZE", "CORE", "NOFILE")
}
told = {
    "environ": dict(os.environ),
    "session": os.getsid(0) == os.getpid(),
    "descriptors": sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:-1],
    "status": {name: status[name].strip() for name in wanted},
    "limits": limits,
}
os.write(3, json.dumps(told).encode() + b"\n")
