"""What a start of the service costs: CPU time until it is ready, and its memory then.

The last line is for machines: `start cpu_s=… rss_mb=…`. See README.md beside this file.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from processes import free_port, own_cpu_s, resident_mb, running

HERE = Path(__file__).resolve().parent


def start(folder: Path) -> tuple[float, float]:
    """Start the service once: CPU seconds until it is ready, and memory in MB."""
    port, log = free_port(), folder / "service.out"
    settings = {
        "SERVICE_HOST": "127.0.0.1",
        "SERVICE_PORT": str(port),
        "SERVICE_DATA_DIR": str(folder / "service"),
    }
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    env = {**kept, **settings, "PYTHONPATH": str(HERE.parent)}
    with running([sys.executable, "-m", "service"], log=log, env=env) as process:
        ends_s = time.monotonic() + 60
        while not _is_ready(port):
            if process.poll() is not None or time.monotonic() > ends_s:
                raise RuntimeError(f"The service did not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.05)
        return own_cpu_s(process.pid), resident_mb(process.pid)


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/readiness", timeout=60):
            return True
    except OSError:
        return False


def main() -> None:
    """Run the whole benchmark; the first start, which creates the database, does not count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="picket-bench-") as name:
        start(Path(name))
        measured = [start(Path(name)) for _ in range(rounds)]
    cpu_s, rss_mb = (statistics.median(column) for column in zip(*measured, strict=True))
    print(f"start cpu_s={cpu_s:.2f} rss_mb={rss_mb:.0f}")


if __name__ == "__main__":
    main()
