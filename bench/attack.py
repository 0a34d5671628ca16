"""How quickly `/health` answers while strangers attack the service's port, which needs no key.

Heads without end, slow heads, and idle connections, each alone and all together, against a real
service process. The last line is for machines: `attack quiet_p99_ms=… heads_p99_ms=… …`.
See README.md beside this file.
"""

import argparse
import contextlib
import os
import resource
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

from processes import free_port, resident_mb, running, wait_for_port

HERE: Final = Path(__file__).resolve().parent
_HEAD: Final = b"GET / HTTP/1.1\r\nhost: x\r\n"
_BLOCK: Final = b"x: " + b"a" * (1 << 20)
_SLOW_HEADS: Final = 200
_EVERY_S: Final = 0.02
Attack = Callable[[int], contextlib.AbstractContextManager[None]]


@contextmanager
def endless_heads(port: int) -> Iterator[None]:
    """One connection after the other sends a head as fast as it is taken."""

    def send() -> None:
        with socket.create_connection(("127.0.0.1", port)) as raw:
            raw.sendall(_HEAD)
            while True:
                raw.sendall(_BLOCK)

    with _repeated(send, threads=2):
        yield


@contextmanager
def slow_heads(port: int) -> Iterator[None]:
    """Many connections send a head byte by byte, and start anew when they are closed."""
    open_ones: list[socket.socket] = []

    def send() -> None:
        while len(open_ones) < _SLOW_HEADS:
            open_ones.append(_opened(port, _HEAD + b"x: "))
        for one in list(open_ones):
            try:
                one.send(b"a")
            except OSError:
                one.close()
                open_ones.remove(one)
        time.sleep(0.5)

    with _repeated(send, threads=1):
        yield
    for one in open_ones:
        one.close()


def idle_connections(count: int) -> Attack:
    """So many connections that send nothing, each opened anew when it is closed."""

    @contextmanager
    def attack(port: int) -> Iterator[None]:
        open_ones: list[socket.socket] = []

        def keep() -> None:
            for one in list(open_ones):
                with contextlib.suppress(BlockingIOError):
                    one.recv(1, socket.MSG_DONTWAIT)
                    one.close()
                    open_ones.remove(one)
            while len(open_ones) < count:
                open_ones.append(_opened(port, b""))
            time.sleep(0.5)

        keep()
        with _repeated(keep, threads=1):
            yield
        for one in open_ones:
            one.close()

    return attack


def _opened(port: int, sent: bytes) -> socket.socket:
    raw = socket.create_connection(("127.0.0.1", port))
    raw.sendall(sent)
    return raw


@contextmanager
def _repeated(act: Callable[[], None], *, threads: int) -> Iterator[None]:
    """Act again and again, whatever the service does to the connections."""
    stopped = threading.Event()

    def loop() -> None:
        while not stopped.is_set():
            with contextlib.suppress(OSError):
                act()

    running_ones = [threading.Thread(target=loop, daemon=True) for _ in range(threads)]
    for one in running_ones:
        one.start()
    try:
        yield
    finally:
        stopped.set()
        for one in running_ones:
            one.join(5)


@contextmanager
def apart(attack: Attack, port: int) -> Iterator[None]:
    """The attack in a process of its own, which shares no interpreter lock with the clock."""
    ready_read, ready_write = os.pipe()
    child = os.fork()
    if not child:
        with attack(port):
            os.write(ready_write, b"!")
            time.sleep(3600)
        os._exit(0)
    os.read(ready_read, 1)
    try:
        yield
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(ready_read)
        os.close(ready_write)


def measure(port: int, for_s: float) -> list[float]:
    """How long `/health` took, in milliseconds, each time on a new connection."""
    took_ms, end_s = [], time.monotonic() + for_s
    while time.monotonic() < end_s:
        began_s = time.perf_counter()
        asked = HTTPConnection("127.0.0.1", port, timeout=30)
        asked.request("GET", "/health")
        answer = asked.getresponse()
        answer.read()
        asked.close()
        if answer.status != 200:
            raise RuntimeError(f"/health answered {answer.status}")
        took_ms.append(1000 * (time.perf_counter() - began_s))
        time.sleep(_EVERY_S)
    return took_ms


def main() -> int:
    """Attack, measure, tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="of each attack")
    parser.add_argument("--idle", type=int, default=5000, help="idle connections")
    chosen = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    attacks: dict[str, tuple[Attack, ...]] = {
        "quiet": (),
        "heads": (endless_heads,),
        "slow": (slow_heads,),
        "idle": (idle_connections(chosen.idle),),
    }
    attacks["all"] = tuple(one for some in attacks.values() for one in some)
    figures = []
    with tempfile.TemporaryDirectory() as folder, _service(Path(folder)) as (port, pid):
        for name, kinds in attacks.items():
            with ExitStack() as stack:
                for kind in kinds:
                    stack.enter_context(apart(kind, port))
                took_ms = measure(port, chosen.seconds)
                memory_mb = resident_mb(pid)
            p99_ms = statistics.quantiles(took_ms, n=100)[98]
            print(
                f"{name:<6} {len(took_ms):5} requests  p50 {statistics.median(took_ms):6.1f} ms"
                f"  p99 {p99_ms:6.1f} ms  max {max(took_ms):6.1f} ms  service {memory_mb:.0f} MB"
            )
            figures.append(f"{name}_p99_ms={p99_ms:.1f}")
    print("attack", *figures)
    return 0


@contextmanager
def _service(folder: Path) -> Iterator[tuple[int, int]]:
    port, log = free_port(), folder / "log"
    env = {
        **os.environ,
        "SERVICE_HOST": "127.0.0.1",
        "SERVICE_PORT": str(port),
        "SERVICE_DATA_DIR": str(folder / "data"),
    }
    with running([sys.executable, "-m", "service"], log=log, env=env) as process:
        wait_for_port(port, process, log=log)
        time.sleep(3)
        yield port, process.pid


if __name__ == "__main__":
    sys.exit(main())
