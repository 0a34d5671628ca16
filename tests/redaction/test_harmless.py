"""A file that holds no secret and is no archive is never withheld, whatever it looks like."""

import base64
import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from random import Random

import pytest
import zstandard

from redaction.clean import ScanLimits, UnscannableError
from redaction.scanner.decompress import is_packed
from redaction.scanner.scan import scan_bytes
from tests.builders.archives import a_zip

SECRETS = ("correct-horse-battery", "hünter-zwei", "a#b2")
DICE = Random(5)
PROSE = {
    "German": "Der Würfel fällt, und über den Flüssen hängt ein süßer Nebel. ",
    "French": "Où l'été s'achève, l'élève déçu relève la tête près du château. ",
    "Greek": "Γρήγορη αλεπού πηδά πάνω από τον τεμπέλη σκύλο. ",
    "Japanese": "いろはにほへと　ちりぬるを。我が世誰ぞ、常ならむ。",
    "Arabic": "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر. ",
}
MINIFIED = (
    '!function(e,t){"use strict";var n=t(1),r=n.a?n.b:"\\u2028\\x20",o=/[\\w%-]+=/g;'
    "for(var i=0,a=e.length>>>0;i<a;i++)o.test(e[i])&&r.push(e[i]|0)}(window,x=>x^2);"
)


def letters(count: int, dice: Random = DICE) -> str:
    return base64.b64encode(dice.randbytes(count)).decode()


def lock_file() -> str:
    packages = {
        f"node_modules/p{number}": {
            "resolved": f"https://registry.example/p/-/p-{number}.0.1.tgz",
            "integrity": f"sha512-{letters(64)}",
        }
        for number in range(300)
    }
    return json.dumps({"lockfileVersion": 3, "packages": packages}, indent=2)


def hashes() -> str:
    return "".join(f"    --hash=sha256:{DICE.randbytes(32).hex()} \\\n" for _ in range(500))


def source_map() -> str:
    mappings = "".join(DICE.choices("ACDEGIKMOQSUWYaceg,;", k=40_000))
    return json.dumps({"version": 3, "sources": ["a.ts"], "mappings": mappings})


def css() -> str:
    fonts = (f"url(data:font/woff2;base64,{letters(9_000)})" for _ in range(6))
    return "".join(f"@font-face{{src:{font}}}.a\\:hover{{content:'\\201C'}}" for font in fonts)


def in_base64_again(text: str, times: int) -> bytes:
    data = text.encode()
    for _ in range(times):
        data = base64.b64encode(data)
    return data


HARMLESS: dict[str, bytes] = {
    **{name: text.encode() * 400 for name, text in PROSE.items()},
    "minified JavaScript": MINIFIED.encode() * 500,
    "lock file": lock_file().encode(),
    "hashes": hashes().encode(),
    "source map": source_map().encode(),
    "CSS with data URLs": css().encode(),
    "base64 of base64": in_base64_again(PROSE["German"] * 20, 2),
    "base64 of eight times base64": in_base64_again(PROSE["Greek"], 9),
    "random bytes": DICE.randbytes(300_000),
    "text cut within a letter": ("a" * 5000 + "é" * 3000).encode()[:-1],
    "form feeds": b"\x0c" * 5000,
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_harmless_passes(name: str) -> None:
    assert scan_bytes(HARMLESS[name], SECRETS) == ()


@pytest.mark.parametrize("end", ["", "é", "漢", "\n"])
@pytest.mark.parametrize("letter", "aAbeJxz09-=é\0")
def test_a_long_run_of_one_letter_passes(letter: str, end: str) -> None:
    for count in (5, 29, 60, 300, 5000):
        assert scan_bytes((letter * count + end).encode(), SECRETS) == ()


def test_bytes_that_repeat_themselves_pass() -> None:
    dice = Random(1)
    patterns = [bytes([byte]) for byte in range(256)]
    patterns += [dice.randbytes(dice.choice((2, 3, 5))) for _ in range(1200)]
    for pattern in patterns:
        assert scan_bytes(pattern * dice.choice((10, 60, 300)), SECRETS) == ()


def test_small_bytes_of_any_sort_pass() -> None:
    dice = Random(2)
    for _ in range(1500):
        assert scan_bytes(dice.randbytes(dice.choice((10, 60, 300, 1000))), SECRETS) == ()


LIMITS = ScanLimits(window_bytes=16 * 1024, run_bytes=128 * 1024)


@pytest.mark.parametrize("mark", ["H4sI", "KLUv", "UEsDBz", "Qlpo", "/Td6WF", "eJ", "eA"])
def test_a_long_data_url_in_which_a_mark_stands_by_chance_passes(mark: str) -> None:
    url = f"data:video/webm;base64,{mark}{letters(90_000, Random(mark))}"
    assert scan_bytes(url.encode(), SECRETS, limits=LIMITS) == ()


@pytest.mark.parametrize("mark", [b"PK\3\4", b"\x28\xb5\x2f\xfd", b"\x78\x9c", b""])
def test_random_bytes_behind_a_mark_pass_in_each_draw(mark: bytes) -> None:
    """One in fifteen was withheld that began like zstd or zlib, and each that did like a zip."""
    for seed in range(60):
        body = mark + Random(seed).randbytes(6_000)
        assert not is_packed(body)
        assert scan_bytes(body, SECRETS) == ()
        assert scan_bytes(base64.b64encode(body), SECRETS) == ()


def test_an_archive_whose_first_member_says_nothing_true_of_itself_is_opened() -> None:
    archive = bytearray(a_zip({"a.txt": SECRETS[0].encode() * 9}))
    archive[4:8] = b"\xff" * 4
    assert scan_bytes(bytes(archive), SECRETS)
    with pytest.raises(UnscannableError, match="broken"):
        scan_bytes(a_zip({"a.txt": letters(900).encode()})[:-30], SECRETS)


@pytest.mark.parametrize(
    "pack",
    [gzip.compress, zstandard.compress, bz2.compress, lzma.compress],
    ids=lambda one: one.__module__,
)
def test_what_is_packed_and_too_long_for_a_text_is_refused(pack: Callable[[bytes], bytes]) -> None:
    url = b"data:a/b;base64," + base64.b64encode(pack(DICE.randbytes(90_000)))
    with pytest.raises(UnscannableError, match="too long to be opened there"):
        scan_bytes(url, SECRETS, limits=LIMITS)
