"""Keys that a run's user leaves with the kernel are gone when the next one gets its number."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.keyrings import clear_keyrings, has_keys
from tests.sandbox.worlds import needs_root

UID = 64017
KEYS = """
import ctypes, os, sys
os.setgroups([]); os.setresgid(*[{uid}] * 3); os.setresuid(*[{uid}] * 3)
call, (add, keyctl) = ctypes.CDLL(None).syscall, {numbers}
rings = [-4, -5, call(keyctl, 22, -1, -2)]
for ring in rings:
    if sys.argv[1] == "put":
        call(add, b"user", b"left", b"secret", 6, ring)
    print(call(keyctl, 10, ring, b"user", b"left", 0) > 0)
"""
NUMBERS = {"x86_64": (248, 250), "aarch64": (217, 219)}


def keys(doing: str) -> list[str]:
    """Of each keyring of the user: whether the key is there."""
    script = KEYS.format(uid=UID, numbers=NUMBERS[os.uname().machine])
    line = [sys.executable, "-I", "-c", script, doing]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout.split()


@needs_root
def test_keys_that_a_user_left_are_dropped() -> None:
    if "True" not in keys("put"):
        pytest.skip("the system keeps no keys for anybody here")
    assert has_keys(UID)
    clear_keyrings(UID)
    assert set(keys("look")) == {"False"}


def test_who_never_had_a_key_costs_no_process(tmp_path: Path) -> None:
    counts = tmp_path / "key-users"
    counts.write_text("    0:     9 8/8 3/1000000 48/25000000\n60610:     2 2/2 2/200 30/20000\n")
    assert has_keys(60610, counts)
    assert not has_keys(6061, counts)
    assert not has_keys(60610, tmp_path / "gone")
