"""The composition of two services runs on this machine, and leaves nothing behind."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.deploy.dockerfile import ROOT
from tests.servers.postgresql import require_programs

_LIMIT_S = 150.0
_RESULT = re.compile(r"^\d\d:\d\d:\d\d  [A-Z]+ .*$", re.MULTILINE)


@pytest.mark.timeout(240)
def test_results_come_in_over_two_services_until_ctrl_c_ends_all_of_it(tmp_path: Path) -> None:
    require_programs()
    out = tmp_path / "out"
    with (
        out.open("w") as printed,
        subprocess.Popen(
            [sys.executable, "-m", "deploy.replicas"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as running,
    ):
        try:
            deadline = time.monotonic() + _LIMIT_S
            while len(_RESULT.findall(out.read_text())) < 15:
                assert running.poll() is None, out.read_text()
                assert time.monotonic() < deadline, out.read_text()
                time.sleep(0.2)
        finally:
            running.send_signal(signal.SIGINT)
        assert running.wait(60) == 0, out.read_text()
    said = out.read_text()
    stored = dict(re.findall(r"(http://\S+) stored (\d+)", said))
    assert len(stored) == 2, said
    # Which of the two stores the first ones is chance: an agent may take all of them at once.
    assert sum(map(int, stored.values())) >= 15, said
    for url in stored:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", urlsplit(url).port or 0)).close()
    folder = re.findall(r"\?host=(\S+)", said)[0]
    assert not Path(folder).exists()
