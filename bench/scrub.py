"""Hide secrets in a trace archive's content, beside a plain loop of `bytes.replace`.

The archive is synthetic and the same in each run. Its raw forms only are what the plain loop looks
for; ours looks for all. The last line is for machines:
`scrub mb_s_1=… mb_s_10=… mb_s_40=… rss_mb=… lag_p99_ms=…`. See README.md beside this file.
"""

import argparse
import asyncio
import json
import random
import string
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from runners.kit.secrets.pattern import SecretPattern
from runners.kit.secrets.stream import HidingStream

GOALS: Final = {
    "mb_s_1": "at least 80",
    "mb_s_10": "at least 80",
    "mb_s_40": "at least 30",
    "rss_mb": "at most 64",
    "lag_p99_ms": "at most 5",
}
COUNTS: Final = (1, 10, 40)
PIECE_BYTES: Final = 1 << 18
TICK_S: Final = 0.01
_ALPHABET: Final = string.ascii_letters + string.digits
_TEXT: Final = (
    "button card cart checkout click color confirm content delivery display div email empty error "
    "expect field flex footer form function header image input item label layout link list locator "
    "login margin message modal navigation onclick order page padding payment price product query "
    "response return section select shadow span style submit table title total undefined value var"
)
_WORDS: Final = tuple(_TEXT.split())
_HITS_EACH: Final = 2000
"""One line of so many shows a secret."""


class Archive:
    """Content of a trace archive: events, snapshots, bodies, scripts."""

    def __init__(self, *, secrets: tuple[str, ...], seed: int) -> None:
        self._random = random.Random(seed)
        self._secrets = secrets

    def pieces(self, size_bytes: int) -> Iterator[bytes]:
        """The content in pieces."""
        made, lines, held = 0, 0, 0
        piece: list[bytes] = []
        while made < size_bytes:
            lines += 1
            line = self._hit() if lines % _HITS_EACH == 0 else self._line()
            piece.append(line)
            made, held = made + len(line) + 1, held + len(line) + 1
            if held >= PIECE_BYTES:
                yield b"\n".join([*piece, b""])
                piece, held = [], 0
        yield b"\n".join([*piece, b""])

    def _words(self, count: int) -> str:
        return " ".join(self._random.choices(_WORDS, k=count))

    def _line(self) -> bytes:
        makers = (self._event, self._snapshot, self._script, self._body)
        (maker,) = self._random.choices(makers, weights=(4, 3, 2, 1))
        return maker().encode()

    def _event(self) -> str:
        number = self._random.randrange(10**6)
        url = f"https://shop.example.test/cart/item-{number}?ref=%2Fhome%3Fa%3Db&q={number * 7}"
        sha1 = f"{self._random.getrandbits(160):040x}"
        params = {"url": url, "sha1": f"{sha1}.html", "timeout": 30_000}
        return json.dumps({"type": "before", "callId": f"call@{number}", "params": params})

    def _snapshot(self) -> str:
        link = ["A", {"href": "/" + self._words(3).replace(" ", "/")}, self._words(12)]
        return json.dumps({"type": "frame-snapshot", "html": ["DIV", {"class": "row"}, link]})

    def _script(self) -> str:
        return (
            f'<div class="{self._words(2)}">{self._words(15)}</div>'
            f'<script>function {self._words(1)}(a,b){{return a&&"{self._words(3)}\\n"}}</script>'
        )

    def _body(self) -> str:
        inner = json.dumps({"text": self._words(8), "name": "naïve"})
        return json.dumps({"name": "content-type", "value": "text/html", "body": inner})

    def _hit(self) -> bytes:
        secret = self._random.choice(self._secrets)
        forms = (secret, quote(secret), json.dumps(secret), b64encode(secret.encode()).decode())
        return json.dumps({"value": self._random.choice(forms)}).encode()


def secrets_of(count: int) -> tuple[str, ...]:
    """Tokens, passwords and keys as they are common."""
    dice = random.Random(7)
    makers: tuple[Callable[[int], str], ...] = (
        lambda _: "".join(dice.choices(_ALPHABET, k=32)),
        lambda _: "".join(dice.choices(f"{_ALPHABET}+/=", k=40)),
        lambda number: f'p@$$ w/ö"rd&<x>%+={number}',
        lambda _: "sk_live_" + "".join(dice.choices(_ALPHABET, k=24)),
    )
    return tuple(makers[number % len(makers)](number) for number in range(count))


def hide(pieces: list[bytes], pattern: SecretPattern) -> int:
    """In how many places secrets were hidden."""
    stream = HidingStream(pattern)
    for piece in pieces:
        stream.feed(piece)
    stream.finish()
    return stream.replacements


def replace_plainly(pieces: list[bytes], secrets: tuple[str, ...]) -> None:
    """The least that could be done."""
    for piece in pieces:
        for secret in secrets:
            piece.replace(secret.encode(), b"*********")


def mb_per_s(pieces: list[bytes], work: Callable[[], object]) -> float:
    """By the CPU time that it takes."""
    started = time.process_time()
    work()
    return sum(map(len, pieces)) / 1e6 / (time.process_time() - started)


def resident_mb() -> float:
    """What this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


async def lag_p99_ms(work: Callable[[], object]) -> float:
    """How late the event loop wakes while a thread hides secrets."""
    task = asyncio.get_running_loop().run_in_executor(None, work)
    lags = []
    while not task.done():
        started = time.perf_counter()
        await asyncio.sleep(TICK_S)
        lags.append(time.perf_counter() - started - TICK_S)
    await task
    return sorted(lags)[int(len(lags) * 0.99)] * 1000 if lags else 0.0


def measure(count: int, size_mb: int) -> dict[str, float]:
    """One number of secrets, in a process that did nothing before."""
    secrets = secrets_of(count)
    pieces = list(Archive(secrets=secrets, seed=count).pieces(size_mb * 1_000_000))
    plain = mb_per_s(pieces, lambda: replace_plainly(pieces, secrets))
    before_mb = resident_mb()
    pattern = SecretPattern(secrets)
    hide(pieces[:4], pattern)
    ours = mb_per_s(pieces, lambda: hide(pieces, pattern))
    held_mb = resident_mb() - before_mb
    few = pieces[: len(pieces) // 4]
    return {
        "plain": plain,
        "mb_s": ours,
        "rss_mb": held_mb,
        "idle_lag_ms": asyncio.run(lag_p99_ms(lambda: time.sleep(2))),
        "lag_p99_ms": asyncio.run(lag_p99_ms(lambda: hide(few, pattern))),
    }


def measured_apart(count: int, size_mb: int) -> dict[str, float]:
    """The same in a process of its own, told as it comes."""
    command = [sys.executable, __file__, "--only", str(count), "--mb", str(size_mb)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    figures: dict[str, float] = json.loads(done.stdout)
    print(
        f"{count} secrets: {figures['mb_s']:.0f} MB/s, raw forms by bytes.replace "
        f"{figures['plain']:.0f} MB/s, {figures['rss_mb']:.0f} MB more held, lag "
        f"{figures['lag_p99_ms']:.1f} ms, {figures['idle_lag_ms']:.1f} ms beside an idle thread",
        flush=True,
    )
    return figures


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=100, help="how much content")
    parser.add_argument("--only", type=int, help="one number of secrets, told as JSON")
    wanted = parser.parse_args()
    if wanted.only:
        print(json.dumps(measure(wanted.only, wanted.mb)))
        return
    apart = {count: measured_apart(count, wanted.mb) for count in COUNTS}
    figures = {f"mb_s_{count}": apart[count]["mb_s"] for count in COUNTS}
    figures["rss_mb"] = max(each["rss_mb"] for each in apart.values())
    figures["lag_p99_ms"] = apart[10]["lag_p99_ms"]
    for name, goal in GOALS.items():
        print(f"{name}: {figures[name]:.1f} ({goal})")
    print("scrub " + " ".join(f"{name}={figures[name]:.1f}" for name in GOALS))


if __name__ == "__main__":
    main()
