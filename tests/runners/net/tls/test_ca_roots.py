"""The roots that HTTP checks trust, and what is left of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import trustme

from runners.net.tls.ca_roots import CaRoots, system_bundle

HOLD = """
import sys
from runners.net.tls.ca_roots import CaRoots
roots = CaRoots(extra_ca_pem=sys.argv[1].encode())
print(len(open(roots.path).read()), flush=True)
sys.stdin.read()
"""


def pem() -> bytes:
    return trustme.CA().cert_pem.bytes()


def test_a_killed_process_leaves_no_file_of_roots(tmp_path: Path) -> None:
    own = pem()
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", HOLD, own.decode()]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, text=True
    ) as holder:
        assert holder.stdout is not None
        assert int(holder.stdout.readline()) > len(own)
        holder.kill()
    assert list(tmp_path.iterdir()) == []


def test_the_operators_roots_stand_beside_the_systems() -> None:
    own = pem()
    roots = CaRoots(extra_ca_pem=own)
    try:
        for _ in range(2):  # each reader begins at the start
            assert Path(roots.path).read_bytes() == system_bundle().read_bytes() + b"\n" + own
    finally:
        roots.close()


def test_without_own_roots_the_systems_file_is_read_itself() -> None:
    roots = CaRoots()
    assert roots.path == str(system_bundle())
    roots.close()


def test_nothing_is_held_after_closing(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    real = os.memfd_create

    def noted(name: str) -> int:
        made.append(real(name))
        return made[-1]

    monkeypatch.setattr(os, "memfd_create", noted)
    roots = CaRoots(extra_ca_pem=pem())
    roots.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(made[0])
