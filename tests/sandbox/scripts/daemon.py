"""Leaves a daemon: forked twice, a session of its own, no environment, no open files."""

import os
import sys
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.chdir("/")
        os.closerange(0, 100)
        os.execve("/bin/sleep", ["sleep", "600"], {})
    os._exit(0)
os.wait()
os.write(3, b'"left"\n')
