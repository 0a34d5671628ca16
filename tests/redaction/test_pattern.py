"""No secret survives, whatever encodings lie over one another; all else stays as it is."""

import base64
import html
import json
import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from redaction.policy import HIDDEN
from redaction.replacer import BLOCK_BYTES, SecretPattern
from tests.builders.encodings import BY_CHARACTER, ENCODINGS, Encoding, decoded, encoded, fits

STARS = HIDDEN.encode()
LETTERS = "abcdefghijklmnopqrstuvwABCDEFGHIJKLMNOPQRSTUVW0123456789"
SIGNS = "!\"#$%&'()+,./:;<=>?@[\\]^`{|} äöüéß"
FOREIGN = "œ€Я漢😀"
OTHER = str.maketrans(
    {char: "Q" if char != "Q" else "R" for char in LETTERS + SIGNS if char.isascii()}
    | dict(zip("äöüéßœ€Я漢😀", "öäéüœß₤Ю語😁", strict=True))
)
"""Every character changed for one that takes as many bytes."""
NEIGHBOURS = st.text("xyzXYZ ,-_", max_size=12)
"""None of their characters is in a secret."""


def secrets(shortest: int, signs: str = SIGNS + FOREIGN) -> st.SearchStrategy[str]:
    char = st.one_of(st.sampled_from(LETTERS), st.sampled_from(signs))
    texts = st.text(char, min_size=shortest, max_size=40)
    return texts.filter(lambda text: text == text.strip() and any(map(str.isalnum, text)))


def pieces_of(secret: str) -> list[bytes]:
    return [secret[at : at + 4].encode() for at in range(len(secret) - 3)]


def left_of(secret: str, hidden: bytes, chain: list[Encoding]) -> list[bytes]:
    """What whoever decodes can still read of it; what does not decode cannot be read."""
    try:
        readable = decoded(hidden, chain)
    except ValueError:
        return []
    return [piece for piece in pieces_of(secret) if piece in readable]


def shared(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    same = (a == b for a, b in zip(one, other, strict=False))
    return next((at for at, is_same in enumerate(same) if not is_same), min(len(one), len(other)))


def is_decoded(data: bytes, chain: list[Encoding], text: str) -> bool:
    try:
        return decoded(data, chain) == text.encode()
    except ValueError:  # one of them cannot read what it made itself
        return False


def is_alike(text: str, other: str, chain: list[Encoding]) -> bool:
    """Whether all of both stands in the same places, so that what they share says something."""
    below = [chain[:size] for size in range(1, len(chain) + 1)]
    return all(len(encoded(text, some)) == len(encoded(other, some)) for some in below)


def is_carried(text: str, other: str, chain: list[Encoding], hidden: bytes) -> bool:
    """Whether more than a character of what the secret alone decides still stands at an end."""
    whole, differing = encoded(text, chain), encoded(other, chain)
    slack = 2 * len(whole) // len(text) + 4
    ends = ((whole, differing, hidden), (whole[::-1], differing[::-1], hidden[::-1]))
    return len(whole) == len(differing) and any(
        shared(one, left) > shared(one, two) + slack for one, two, left in ends
    )


@settings(max_examples=200)
@given(secret=secrets(4), encoding=st.sampled_from(ENCODINGS), before=NEIGHBOURS, after=NEIGHBOURS)
def test_no_secret_survives_an_encoding_and_its_result_still_decodes(
    secret: str, encoding: Encoding, before: str, after: str
) -> None:
    whole = encoding.encode(f"{before}{secret}{after}".encode())
    hidden, count = SecretPattern([secret]).hide(b'"' + whole + b'"')
    assert count
    assert (hidden[:1], hidden[-1:]) == (b'"', b'"')
    readable = encoding.decode(hidden[1:-1])
    assert not [piece for piece in pieces_of(secret) if piece in readable]


@settings(max_examples=100)
@given(
    secret=secrets(4), encoding=st.sampled_from(BY_CHARACTER), before=NEIGHBOURS, after=NEIGHBOURS
)
def test_what_stands_beside_a_secret_stays_byte_by_byte(
    secret: str, encoding: Encoding, before: str, after: str
) -> None:
    parts = [encoding.encode(text.encode()) for text in (before, secret, after)]
    hidden, _ = SecretPattern([secret]).hide(b"".join(parts))
    # A quote of its own may be JSON's.
    shown = (STARS, STARS + b'"') if secret.endswith('"') or secret[:1] in "[{" else (STARS,)
    assert hidden.endswith(tuple(one + parts[2] for one in shown)) or encoding.name == "colours"
    assert hidden.startswith(parts[0])


@settings(max_examples=200)
@given(
    secret=secrets(8),
    chain=st.lists(st.sampled_from(ENCODINGS), min_size=2, max_size=3),
    before=NEIGHBOURS,
    after=NEIGHBOURS,
)
def test_no_secret_survives_encodings_over_one_another(
    secret: str, chain: list[Encoding], before: str, after: str
) -> None:
    assume(fits(chain, secret))
    text = f"{before}{secret}{after}"
    whole = encoded(text, chain)
    assume(is_decoded(whole, chain, text))
    hidden, _ = SecretPattern([secret]).hide(b"<<" + whole + b">>")
    assert (hidden[:2], hidden[-2:]) == (b"<<", b">>")
    assert not left_of(secret, hidden[2:-2], chain)
    other = f"{before}{secret.translate(OTHER)}{after}"
    assert not is_alike(text, other, chain) or not is_carried(text, other, chain, hidden[2:-2])


@pytest.mark.parametrize(
    ("secret", "chain"),
    [
        ("c3é+h32püg", ["hexdump", "form", "lower percent"]),
        ('漢€>)5U"ü€kEЯ?漢漢c$"(a<4öc1@f', ["quoted-printable", "form"]),
        ("5kgЯ2ß:4aßn!än漢^=ß=@4cF9Sä&&", ["quoted-printable", "component", "percent everywhere"]),
        ("|p@E|;#r9C€`3é<&`?V漢D3😀[@!]", ["form", "quoted-printable", "path"]),
        ("漢W^k6WBD!(WLK;H0$Gji68,s\\C#D", ["colours", "JSON of PHP", "component"]),
    ],
)
def test_pairs_of_encodings_that_once_hid_a_secret(secret: str, chain: list[str]) -> None:
    names = {encoding.name: encoding for encoding in ENCODINGS}
    encodings = [names[name] for name in chain]
    whole = encoded(f"x,-{secret} Y_z", encodings)
    hidden, _ = SecretPattern([secret]).hide(b"<<" + whole + b">>")
    assert not left_of(secret, hidden[2:-2], encodings)
    assert secret.encode()[-6:] not in decoded(hidden[2:-2], encodings)


@pytest.mark.parametrize("charset", ["latin-1", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("is_ascii", [True, False])
def test_a_text_that_was_misread_as_utf_8_goes(charset: str, *, is_ascii: bool) -> None:
    misread = "a hünter-tßo/9 b".encode(charset).decode("utf-8", "replace")
    text = json.dumps(misread, ensure_ascii=is_ascii).encode()
    hidden, _ = SecretPattern(["hünter-tßo/9"]).hide(text)
    assert "nter" not in json.loads(hidden).replace("\0", "")
    assert "/9" not in json.loads(hidden).replace("\0", "")


@pytest.mark.parametrize("charset", ["utf-8", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("is_ascii", [True, False])
def test_a_text_that_was_misread_as_latin_1_goes(charset: str, *, is_ascii: bool) -> None:
    misread = "a hünter-t漢o/9 b".encode(charset).decode("latin-1")
    text = json.dumps(misread, ensure_ascii=is_ascii).encode()
    hidden, _ = SecretPattern(["hünter-t漢o/9"]).hide(text)
    assert "nter" not in json.loads(hidden).replace("\0", "")
    assert "/9" not in json.loads(hidden).replace("\0", "")


SIGNS_OF_ONE_BYTE = [
    ("p\xe4ssw\xf6rt", "latin-1"),
    ("\xdcn\xefc\xf8d\xe9", "latin-1"),
    ("pa\u20acw\xf6rd12", "cp1252"),
    ("p\xe4ssw\xf6rt", "utf-16-le"),
    ("\u043f\u0430\u0440\u043e\u043b\u044c12", "utf-16-be"),
]
BYTES_AS: dict[str, Callable[[bytes], bytes]] = {
    "raw": bytes,
    "percent": lambda text: quote(text, safe="").encode(),
    "base64": base64.b64encode,
    "base64 behind a name": lambda text: base64.b64encode(b"a:" + text + b"\n"),
    "hexadecimal": lambda text: text.hex().encode(),
    "hexadecimal in pairs": lambda text: text.hex(" ").encode(),
}


@pytest.mark.parametrize(("secret", "charset"), SIGNS_OF_ONE_BYTE)
@pytest.mark.parametrize("written", BYTES_AS)
def test_a_secret_goes_in_each_character_set_whatever_encodes_its_bytes(
    secret: str, charset: str, written: str
) -> None:
    """As browsers have it: `btoa` takes Latin-1, and pages of Windows send `%80` for the euro."""
    if written == "percent" and charset.startswith("utf-16"):
        return  # nobody writes these so
    form = BYTES_AS[written](secret.encode(charset))
    for typed in ((), (secret,)):
        clean, count = SecretPattern([secret], typed=typed).hide(b"{<" + form + b">}")
        assert count == 1
        assert form[3:-3] not in clean
        assert clean.startswith(b"{<")
        assert clean.endswith(b">}")


def test_a_secret_in_base64_keeps_its_neighbours_whatever_escapes_the_letters() -> None:
    octal = b"".join(b"\\%03o" % letter for letter in base64.b64encode(b"xyz hunter-two zyx"))
    hidden, _ = SecretPattern(["hunter-two"]).hide(octal)
    letters = re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), hidden)
    readable = base64.b64decode(letters)
    assert (readable[:3], readable[-3:]) == (b"xyz", b"zyx")


@given(st.binary(max_size=2000))
def test_bytes_without_a_secret_stay_as_they_are(data: bytes) -> None:
    pattern = SecretPattern(["hunter-two/é", 'p@$$ w/ö"rd&<x>%+='])
    assert pattern.hide(data) == (data, 0)


@pytest.mark.parametrize(
    ("values", "text", "shown"),
    [
        (["hunter-two", "two-lions"], "a hunter-two-lions b", f"a {HIDDEN} b"),
        (["hunter", "hunter-two"], "hunter-two hunter", f"{HIDDEN} {HIDDEN}"),
        (["correct horse", "horse"], "correct horse", HIDDEN),
        (["abab"], "ababab", HIDDEN),
        (["a&b<c", "c/d"], "a&amp;b&lt;c%2Fd", HIDDEN),
        (["hunter-two", "two%lions"], "hunter-two%25lions", HIDDEN),
    ],
)
def test_no_byte_that_any_occurrence_covers_survives(
    values: list[str], text: str, shown: str
) -> None:
    hidden, _ = SecretPattern(values).hide(text.encode())
    assert hidden == shown.encode()


def test_secrets_of_several_expressions_cover_together() -> None:
    many = [f"s3cr3t-number-{number:03}/é<>&" for number in range(60)]
    chained = "".join(f"{secret[:-2]}" for secret in many) + many[0]
    overlapping = [f"{many[0][-6:]}|{many[1][:6]}"]
    text = f"{many[0]}|{many[1]} {chained}"
    hidden, _ = SecretPattern([*many, *overlapping]).hide(text.encode())
    assert hidden.startswith(STARS + b" ")


@pytest.mark.parametrize("secret", ['quo"te\\and\\\\more', "Aé漢😀-long-enough", "/slashes/in/it"])
def test_json_stays_json(secret: str) -> None:
    for inner in (secret, json.dumps(secret), secret.encode("unicode_escape").decode()):
        document = {"before\\": ["\\", inner, "\\\\"], "x" + inner: f"\\{inner}\\"}
        for ascii_only in (True, False):
            text = json.dumps(document, ensure_ascii=ascii_only)
            hidden, count = SecretPattern([secret]).hide(text.encode())
            assert count >= 3
            assert json.loads(hidden)["before\\"][0::2] == ["\\", "\\\\"]


@settings(max_examples=300)
@given(
    secret=secrets(6, '\\"&é'),
    is_typed=st.booleans(),
    size=st.integers(4, 12),
    inner=st.sampled_from([str, json.dumps, html.escape, quote]),
    around=st.tuples(*[st.sampled_from(["", "a", "\\", '"', "%", "\n", " "])] * 2),
)
def test_lines_of_json_stay_json(
    secret: str, size: int, inner: Callable[[str], str], around: tuple[str, str], *, is_typed: bool
) -> None:
    pattern = SecretPattern([secret], typed=[secret] if is_typed else [])
    told = inner(secret[:size] if is_typed else secret)
    line = json.dumps({"text": told.join(around), "args": [{"v": told}, told]})
    hidden, _ = pattern.hide(line.encode())
    assert len(json.loads(hidden)["args"]) == 2


@pytest.mark.parametrize("typed", [r"CORP\alice9!", r"pass\wörd!", "Zq7pw!end\\", 'Zq7pw"!end'])
def test_a_secret_with_signs_of_json_leaves_json_at_each_of_its_lengths(typed: str) -> None:
    pattern = SecretPattern([typed], typed=[typed])
    for size in range(1, len(typed) + 1):
        told = json.dumps({"v": typed[:size]})
        line = json.dumps({"text": told, "args": [json.dumps(told), f"{typed[:size]}\\"]})
        json.loads(pattern.hide(line.encode())[0])


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("padding", [b"", b"="])
def test_base64_keeps_its_length_by_the_four(place: int, padding: bytes) -> None:
    text = base64.b64encode(b"x" * place + b"hunter-two" + b"y" * 7)
    text = text if padding else text.rstrip(b"=")
    hidden, count = SecretPattern(["hunter-two"]).hide(text)
    assert count == 1
    assert len(hidden) % 4 == len(text) % 4
    assert b"hunter" not in base64.b64decode(hidden + b"=" * (-len(hidden) % 4), validate=True)


def test_names_of_files_get_letters() -> None:
    pattern = SecretPattern(["hunter-two"])
    assert pattern.hide(b"log-hunter-two.txt", shown=b"hidden") == (b"log-hidden.txt", 1)


@pytest.mark.parametrize(
    "run",
    [b"%25", b"%", b"\\", b"A", b"aGVs", b"&amp;", b"\\u0041", b"%41", b"&#65;", b"41 ", b"a\0"],
    ids=repr,
)
def test_long_runs_of_signs_end_and_what_follows_is_found(run: bytes) -> None:
    """Each within the 20 s of any test; a quadratic search would take hours."""
    pattern = SecretPattern(["hunter-two/é", "\\\\%%%25", "AAAAB"])
    data = run * (BLOCK_BYTES // len(run) // 4)
    hidden, count = pattern.hide(data + b" hunter-two%2F\xc3\xa9")
    assert count == 1
    assert hidden == data + b" " + STARS


def test_a_secret_over_the_end_of_a_block_goes() -> None:
    pattern = SecretPattern(["hunter-two/é"])
    for form in (b"hunter-two%2F%C3%A9", base64.b64encode("hunter-two/é".encode())):
        for shift in range(len(form) + 1):
            data = b" " * (BLOCK_BYTES - shift) + form + b" " * pattern.overlap_bytes
            hidden, count = pattern.hide(data)
            assert count == 1
            assert hidden.strip(b" ") != form
            assert not hidden.startswith(data[: BLOCK_BYTES - shift + 4])


def test_a_pattern_that_gave_back_its_memory_finds_as_before() -> None:
    pattern = SecretPattern(["hunter-two"])
    pattern.free()
    before = pattern.hide(b"a hunter-two b")
    pattern.free()
    assert pattern.hide(b"a hunter-two b") == before
    assert before[1] == 1
