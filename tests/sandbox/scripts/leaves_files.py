"""Leaves what is hard to remove: closed folders, deep ones, links, files outside."""

import os
import tempfile

os.makedirs("closed/inside")
open("closed/inside/file", "w").write("x")
os.chmod("closed/inside", 0)
os.chmod("closed", 0)
os.symlink("/etc", "link")
try:
    os.link("/etc/passwd", "second-name")
except OSError:
    pass
for folder in ("/tmp", "/var/tmp", "/dev/shm"):
    made = tempfile.mkdtemp(dir=folder, prefix="left-")
    open(made + "/file", "w").write("x")
    os.chmod(made, 0)
    open(made + "-file", "w").write("x")
os.system("ipcmk -M 1000 >/dev/null")
for _ in range(1100):
    os.mkdir("deeper")
    os.chdir("deeper")
