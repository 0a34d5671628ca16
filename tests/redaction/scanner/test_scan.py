"""No secret is overlooked, whatever lies around it, and nothing else is taken for one."""

import base64
import gzip
import html
import io
import json
import os
import quopri
import random
import tarfile
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import quote, quote_plus

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from redaction.clean import ScanLimits, UnscannableError
from redaction.scanner.scan import scan_bytes, scan_file

SECRET = 'p@$$ w/ö"rd&<x>%+=!tail'
Encoder = Callable[[bytes], bytes]


def every_percent(text: bytes) -> bytes:
    return b"".join(b"%%%02x" % byte for byte in text)


def every_entity(text: bytes) -> bytes:
    return "".join(f"&#{ord(char)};" for char in readable(text)).encode()


def every_hex_entity(text: bytes) -> bytes:
    return "".join(f"&#x{ord(char):X};" for char in readable(text)).encode()


def every_backslash_u(text: bytes) -> bytes:
    return "".join(
        "\\u" + char.encode("utf-16-be")[at : at + 2].hex()
        for char in readable(text)
        for at in range(0, len(char.encode("utf-16-be")), 2)
    ).encode()


def coloured(text: bytes) -> bytes:
    return b"\x1b[27m".join(bytes((byte,)) for byte in text)


def readable(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape").encode("utf-8", "replace").decode()


CHARACTERS: dict[str, Encoder] = {
    "percent": lambda text: quote(text, safe="").encode(),
    "path": lambda text: quote(text).encode(),
    "form": lambda text: quote_plus(text).encode(),
    "lower percent": every_percent,
    "json": lambda text: json.dumps(readable(text))[1:-1].encode(),
    "json of slashes": lambda text: json.dumps(readable(text))[1:-1].replace("/", "\\/").encode(),
    "json in utf-8": lambda text: json.dumps(readable(text), ensure_ascii=False)[1:-1].encode(),
    "backslash u": every_backslash_u,
    "python": lambda text: repr(readable(text))[1:-1].encode(),
    "python bytes": lambda text: repr(text)[2:-1].encode(),
    "entities": lambda text: html.escape(readable(text)).encode(),
    "every entity": every_entity,
    "every hex entity": every_hex_entity,
}
BLOCKS: dict[str, Encoder] = {
    "base64": base64.b64encode,
    "base64url": base64.urlsafe_b64encode,
    "base64 after one": lambda text: base64.b64encode(b"u" + text),
    "base64 after two": lambda text: base64.b64encode(b"us" + text + b"z"),
    "base64 bare": lambda text: base64.b64encode(text).rstrip(b"="),
    "base64 in lines": base64.encodebytes,
    "hex": lambda text: text.hex().encode(),
    "upper hex": lambda text: text.hex().upper().encode(),
}
WHOLE: dict[str, Encoder] = {
    "raw": lambda text: text,
    "coloured": coloured,
    "quoted-printable": lambda text: quopri.encodestring(text, quotetabs=True),
    "utf-16": lambda text: readable(text).encode("utf-16-le"),
    "list of numbers": lambda text: json.dumps(list(text)).encode(),
}
ENCODERS = {**CHARACTERS, **BLOCKS, **WHOLE}
BODIES: dict[str, Encoder] = {
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "deflate": lambda text: zlib.compress(text)[2:-4],
    "brotli": partial(brotli.compress, quality=5),  # the best takes seconds for a bomb
    "zstd": zstandard.compress,
}
FILLER = b'{"url":"https://shop.example/a?page=12&q=%C3%B6","text":"all is well"}\n'

secrets = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=8, max_size=60
).filter(lambda text: text == text.strip() and len(set(text)) > 4)


def zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def tarred(name: str, content: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        about = tarfile.TarInfo(name)
        about.size = len(content)
        archive.addfile(about, io.BytesIO(content))
    return file.getvalue()


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_secret_is_found_in_every_encoding(encoder: str) -> None:
    content = FILLER + b'"' + ENCODERS[encoder](SECRET.encode()) + b'"' + FILLER
    assert scan_bytes(content, [SECRET])


@settings(max_examples=400, deadline=None)
@given(
    secret=secrets,
    around=st.sampled_from([b"", FILLER, b"\x00\xff", b"100% a\\"]),
    layers=st.lists(st.sampled_from([*CHARACTERS, *BLOCKS]), min_size=0, max_size=3),
)
def test_no_three_encodings_hide_a_secret(secret: str, around: bytes, layers: list[str]) -> None:
    content = secret.encode()
    for name in layers:
        content = ENCODERS[name](content)
    assert scan_bytes(around + b" " + content + b" " + around, [secret])


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("wrap", ["alone", "in base64", "in a form", "in gzip"])
def test_a_secret_is_found_in_compressed_bodies(body: str, wrap: str) -> None:
    packed = BODIES[body](FILLER + SECRET.encode() + FILLER)
    content = {
        "alone": packed,
        "in base64": b'{"data":"data:application/gzip;base64,' + base64.b64encode(packed) + b'"}',
        "in a form": b"--b\r\nContent-Type: application/gzip\r\n\r\n" + packed + b"\r\n--b--\r\n",
        "in gzip": gzip.compress(packed),
    }[wrap]
    headless = body in ("brotli", "deflate", "zlib")
    if headless and wrap == "in a form":
        pytest.skip("nothing tells where such a body begins; requests name its type beside it")
    if body in ("brotli", "deflate") and wrap == "in base64":
        pytest.skip("nothing tells such bytes from others")
    assert scan_bytes(content, [SECRET])


@pytest.mark.parametrize(
    ("archive", "kind", "place"),
    [
        (zipped(a=b"x", **{"0-trace.trace": SECRET.encode()}), "trace event", "member 2 of 2"),
        (zipped(**{"0-trace.network": SECRET.encode()}), "network log", "member 1 of 1"),
        (zipped(**{"resources/0a.html": SECRET.encode()}), "resource", "member 1 of 1"),
        (zipped(**{"resources/src@0a.txt": SECRET.encode()}), "source", "member 1 of 1"),
        (zipped(**{"attachments/0a": SECRET.encode()}), "attachment", "member 1 of 1"),
        (zipped(**{f"a/{quote(SECRET)}": b""}), "member name", "member 1 of 1"),
        (zipped(inner=zipped(**{"x.html": SECRET.encode()})), "archive member", "member 1 of 1"),
        (zipped(inner=tarred("a", SECRET.encode())), "archive member", "member 1 of 1"),
    ],
)
def test_a_hit_tells_what_kind_of_member_holds_it_and_where(
    tmp_path: Path, archive: bytes, kind: str, place: str
) -> None:
    path = tmp_path / "trace.zip"
    path.write_bytes(archive)
    (leak, *_) = scan_file(path, [SECRET])
    assert leak.kind == kind
    assert leak.place.startswith(place)
    assert SECRET not in repr(leak)


def test_archives_of_the_other_kinds_are_opened_too() -> None:
    assert scan_bytes(gzip.compress(tarred("a", SECRET.encode())), [SECRET])
    assert scan_bytes(tarred(SECRET, b""), [SECRET])


@pytest.mark.parametrize("method", ["type", "press"])
def test_a_secret_typed_key_by_key_is_found(method: str) -> None:
    field = "key" if method == "press" else "text"
    lines = [
        json.dumps({"type": "before", "method": method, "params": {field: key}, "at": number})
        for number, key in enumerate(SECRET)
    ]
    assert scan_bytes("\n".join(lines).encode(), [SECRET])


def test_a_text_that_came_in_chunks_is_found() -> None:
    lines = [json.dumps({"type": "stdout", "text": piece}) for piece in (SECRET[:9], SECRET[9:])]
    assert scan_bytes("\n".join(lines).encode(), [SECRET])


@settings(max_examples=60, deadline=None)
@given(
    before=st.integers(0, 3000), size=st.integers(16, 2000), encoder=st.sampled_from([*ENCODERS])
)
def test_no_window_ends_within_a_secret(before: int, size: int, encoder: str) -> None:
    limits = ScanLimits(window_bytes=1024, run_bytes=64 * 1024)
    content = b"." * before + b'"' + ENCODERS[encoder](SECRET.encode()) + b'"' + b"-" * size * 40
    assert scan_bytes(content, [SECRET], limits=limits)


@pytest.mark.parametrize("content", [FILLER * 2000, os.urandom(200_000), b"A" * 200_000])
def test_what_holds_no_secret_is_clean(content: bytes) -> None:
    assert scan_bytes(content, [SECRET, "hunter22"]) == ()


def test_short_secrets_are_not_found_by_chance() -> None:
    random.seed(1)
    content = base64.b64encode(random.randbytes(3_000_000))
    assert scan_bytes(content, ["a#b2", "Qz%x", "0.00"]) == ()
    assert scan_bytes(random.randbytes(3_000_000), ["a#b2", "Qz%x", "0000"]) == ()
    for content in (b"key=" + base64.b64encode(b"a1b2"), b"a1b2", "ü a1b2 ü".encode()):
        assert scan_bytes(content, ["a1b2"])


def test_letters_count() -> None:
    assert scan_bytes(SECRET.upper().encode(), [SECRET]) == ()


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    path.write_bytes(zipped(a=bytes(40_000_000)))
    with pytest.raises(UnscannableError, match="more than can be unpacked"):
        scan_file(path, [SECRET], limits=ScanLimits(unpacked_bytes=10_000_000))


@pytest.mark.parametrize("body", ["gzip", "brotli", "zstd"])
def test_a_bomb_is_never_held_in_memory(body: str) -> None:
    packed = BODIES[body](bytes(100_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(UnscannableError):
            scan_bytes(packed, [SECRET], limits=ScanLimits(unpacked_bytes=30_000_000))
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()


def test_archives_in_archives_end_somewhere() -> None:
    content = SECRET.encode()
    for _ in range(9):
        content = zipped(a=content)
    with pytest.raises(UnscannableError, match="are nested"):
        scan_bytes(content, [SECRET])


def test_what_an_archive_does_not_name_is_not_overlooked(tmp_path: Path) -> None:
    path = tmp_path / "two.zip"
    hidden = zipped(**{"a.txt": SECRET.encode() * 30})
    path.write_bytes(hidden[: hidden.index(b"PK\x01\x02")] + zipped(b=b"x"))
    with pytest.raises(UnscannableError, match="more than its directory lists"):
        scan_file(path, [SECRET])


@pytest.mark.parametrize("archive", [zipped(a=b"x"), tarred("a", b"x")], ids=["zip", "tar"])
def test_what_follows_an_archive_within_another_is_not_overlooked(archive: bytes) -> None:
    follows = archive + gzip.compress(SECRET.encode())
    with pytest.raises(UnscannableError, match="continues after its end"):
        scan_bytes(zipped(inner=follows), [SECRET])
    assert scan_bytes(zipped(inner=archive), [SECRET]) == ()


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "locked.zip"
    content = bytearray(zipped(a=b"x"))
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(UnscannableError, match="encrypted"):
        scan_file(path, [SECRET])


@pytest.mark.parametrize(
    "content",
    [
        b"%25" * 300_000, b"\\" * 1_000_000, b"&amp;" * 200_000, b"=\r\n" * 300_000,
        b"A" * 3_000_000, b"0" * 2_000_000, b"1," * 500_000, b"\x1b[" * 400_000,
        b"\x1f\x8b\x08" * 300_000, b"PK\x03\x04" * 200_000, b'"key":"' * 100_000,
        b"\n" + b" " * 1_000_000, b"=41" * 300_000, b"(\xb5/\xfd" * 200_000,
    ],
    ids=lambda content: repr(content[:6]),
)  # fmt: skip
def test_hostile_runs_take_no_time(content: bytes) -> None:
    limits = ScanLimits(window_bytes=128 * 1024)
    try:
        assert scan_bytes(content, [SECRET, "x" * 4], limits=limits) == ()
    except UnscannableError:
        assert content.startswith((b"\x1f\x8b", b"PK", b"(\xb5"))


def test_a_key_of_several_kilobytes_is_found_wherever_it_stands() -> None:
    key = "".join(random.Random(2).choices("abcdefghij \nKLMNOP/+=", k=6000))
    for name in ("raw", "json", "base64", "percent", "hex"):
        assert scan_bytes(FILLER * 9000 + b'"' + ENCODERS[name](key.encode()) + b'"', [key])


@pytest.mark.parametrize(
    "quoted",
    [
        b"hunt=65=72-t=77o", b"hunter=2Dtwo", b"hunter-tw=\r\no", b"hunter-=74=\nwo",
        b"=68=75=6e=74=65=72=2d=74=77=6f",
    ],
)  # fmt: skip
def test_a_secret_that_is_quoted_in_part_is_found(quoted: bytes) -> None:
    assert scan_bytes(FILLER + quoted + FILLER, ["hunter-two"])


def test_a_quoted_f_at_the_beginning_of_a_line_is_read() -> None:
    assert scan_bytes(b"\n=46rom-hunter-two\n", ["From-hunter-two"])


@pytest.mark.parametrize("shift", [0, 1])
def test_hexadecimal_is_found_in_lines_and_beside_other_digits(shift: int) -> None:
    digits = b"0" * shift + b"hunter-two".hex().encode()
    assert scan_bytes(b"x-" + digits + b"\nabc\n", ["hunter-two"])


@pytest.mark.parametrize("charset", ["utf-8", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("secret", ["ключ-от-дома", "漢字かな交じり文"])
def test_letters_of_any_script_are_read_in_hexadecimal(secret: str, charset: str) -> None:
    assert scan_bytes(b"x-" + secret.encode(charset).hex().encode() + b"\n", [secret])


@pytest.mark.parametrize("secret", ["hünter-tßo", "hunt€r-tw漢o", "hunt-ß€-two"])
@pytest.mark.parametrize("charset", ["latin-1", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("is_ascii", [True, False])
def test_a_text_that_was_misread_as_utf_8_still_holds_its_secret(
    secret: str, charset: str, *, is_ascii: bool
) -> None:
    try:
        misread = f"a {secret} b".encode(charset).decode("utf-8", "replace")
    except UnicodeEncodeError:
        return
    assert scan_bytes(json.dumps(misread, ensure_ascii=is_ascii).encode(), [secret])


def test_wide_characters_whose_zeros_are_escaped_are_read() -> None:
    wide = "a hunter-two b".encode("utf-16-le").decode()
    assert scan_bytes(json.dumps(wide).encode(), ["hunter-two"])
