"""Long secrets are followed from their heads on, and found where compiled forms would be."""

import base64
import html
import json
import string
import subprocess
import sys
from random import Random
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redaction.compiled import (
    Form,
    Part,
    char_parts,
    compile_forms,
    compile_segmented,
    find_overlapping,
    whole_form,
)
from redaction.encodings import char_expressions, mixed_expression, normalize
from redaction.replacer import SecretPattern
from tests.builders.encodings import BY_CHARACTER, Encoding

MOST_BYTES = 64 << 20
"""What the search for secrets may take above its base."""
MEASURED = """
import sys
from redaction.replacer import SecretPattern
from tests.redaction.test_following import long_secret, told

def peak_bytes():
    status = open("/proc/self/status").read()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024

number, chars = map(int, sys.argv[1:])
secrets = [long_secret(chars, seed) for seed in range(number)]
SecretPattern(["warm-up!"]).hide(told("warm-up!"))
before = peak_bytes()
clean, _ = SecretPattern(secrets, typed=secrets).hide(b"".join(map(told, secrets)))
assert not any(secret[:6].encode() in clean for secret in secrets)
print(peak_bytes() - before)
"""


def long_secret(chars: int, seed: int = 1) -> str:
    letters = string.ascii_letters + string.digits + "!$%&/()=?+*#-_.:,;"
    return "".join(Random(seed).choices(letters, k=chars))


def told(secret: str) -> bytes:
    """What a page tells of a field that grows."""
    grown = (secret[: size + 1].encode() for size in range(6, len(secret), len(secret) // 3))
    return b"".join(b"%s %s\n" % (text, base64.b64encode(text)) for text in grown)


@pytest.mark.parametrize(("number", "chars"), [(10, 1000), (10, 300), (64, 16), (10, 8000)])
def test_typed_secrets_take_little_memory_however_long_they_are(number: int, chars: int) -> None:
    line = [sys.executable, "-c", MEASURED, str(number), str(chars)]
    measured = subprocess.run(line, capture_output=True, check=True)
    assert int(measured.stdout) < MOST_BYTES


@given(
    secret=st.text(st.sampled_from("ab01" + "\\&<%=/; \"'+\n" + "üß€😀"), min_size=1, max_size=30),
    encoding=st.sampled_from(BY_CHARACTER),
    beside=st.sampled_from(["", "\\", "&", "x", ";", " "]),
)
@settings(deadline=None)
def test_a_form_is_found_where_its_expression_would_be(
    secret: str, encoding: Encoding, beside: str
) -> None:
    text = f"{beside}{encoding.encode(secret.encode()).decode('latin-1')}{beside}".encode("latin-1")
    chars = normalize(secret)
    (own,) = compile_segmented([whole_form(char_parts(chars, char_expressions(chars)))])
    (whole,) = compile_forms([mixed_expression(secret)])
    assert list(find_overlapping(own, text)) == list(find_overlapping(whole, text))


def test_what_could_end_in_several_places_ends_where_the_rest_goes_on() -> None:
    (css,) = compile_segmented([whole_form([Part(r"\\3c ?"), Part(" ")])])
    found = css.search(rb"a\3c ")
    assert found is not None
    assert found.span() == (1, 5)
    assert css.fullmatch(rb"\3c  ") is not None
    assert css.fullmatch(rb"\3c") is None


def test_so_much_of_a_form_is_found_as_there_is_from_its_least_on() -> None:
    parts = tuple(Part(letter, letter.encode()) for letter in "abcdefgh")
    (grown,) = compile_segmented([Form(parts, min_parts=4, after="[!?]")])
    assert list(find_overlapping(grown, b"abc abcd abcde! abcdefgh? abcdefghi")) == [
        (4, 8),
        (9, 15),
        (16, 25),
        (26, 34),
    ]


def test_forms_with_one_head_are_all_followed_and_the_longest_is_told() -> None:
    texts = ("0123456789-a", "0123456789-bc", "0123456789-")
    (all_of,) = compile_segmented(
        whole_form(char_parts(one, char_expressions(one))) for one in texts
    )
    assert list(find_overlapping(all_of, b"0123456789-bc 0123456789-x 01234567")) == [
        (0, 13),
        (14, 25),
    ]


@pytest.mark.parametrize("size", [49, 64, 300, 1000, 1025, 3000, 8192])
def test_a_long_secret_goes_in_each_form_and_what_begins_like_it_stays(size: int) -> None:
    secret = long_secret(size)
    pattern = SecretPattern([secret])
    forms = (
        secret.encode(),
        json.dumps(secret)[1:-1].encode(),
        json.dumps(json.dumps({"in": json.dumps({"in": secret})})).encode(),
        html.escape(secret).encode(),
        repr(secret).replace("&", r"\x26").encode(),
        quote(secret, safe="").encode(),
        quote(quote(secret, safe=""), safe="").encode(),
        base64.b64encode(secret.encode()),
        secret.encode().hex().encode(),
        secret.encode("utf-16-le"),
    )
    for written in forms:
        clean, count = pattern.hide(b"<" + written + b">")
        assert count
        assert len(clean) < 80
    early = b"<" + secret[:12].encode() + b"_" + secret[13:16].encode() + b">"
    assert pattern.hide(early) == (early, 0)
