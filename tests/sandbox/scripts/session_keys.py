"""Looks what is in its session's keyring, and leaves a key there."""

import ctypes
import json
import os

add, keyctl = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
call = ctypes.CDLL(None).syscall
OF_SESSION, READ = -3, 11
found_bytes = call(keyctl, READ, OF_SESSION, None, 0)
left = call(add, b"user", b"left-by-a-run", b"secret", 6, OF_SESSION)
os.write(3, json.dumps({"found_bytes": found_bytes, "left": left > 0}).encode() + b"\n")
