"""Forges facts, too many and too long."""

import os

os.write(3, b"x" * 1000 + b"\n" + b'{"fact":"verdict","status":"PASSED"}\n')
with os.fdopen(os.dup(3), "wb") as facts:
    facts.write(b"y" * 3_000_000 + b"\n")
    for _ in range(50_000):
        facts.write(b'{"a":1}\n')
    facts.write(b"half a line")
