"""Leaves a daemon, and does not end itself."""

import os
import time

daemon = os.fork()
if daemon == 0:
    os.setsid()
    if os.fork() == 0:
        os.chdir("/")
        os.execve("/bin/sleep", ["sleep", "600"], {})
    os._exit(0)
os.wait()
open("left-behind", "w").write("x")
os.write(3, b'"daemon"\n')
time.sleep(600)
