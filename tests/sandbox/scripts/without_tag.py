"""Leaves a daemon that has lowered its tag as far as it goes."""

import os
import resource

LOCKS = 10
resource.setrlimit(LOCKS, (0, 0))
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve("/bin/sleep", ["sleep", "600"], {})
    os._exit(0)
os.wait()
