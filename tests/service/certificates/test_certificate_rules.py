import base64

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from service.certificates.rules import (
    MAX_TOGETHER_BYTES,
    cost_problem,
    host_problem,
    together_problem,
)

HASHED = bytes.fromhex("06092a864886f70d01050c")
"""The name of PBKDF2, as it stands before salt and rounds."""


def der(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = len(content)
    head = bytes([tag, size]) if size < 0x80 else bytes([tag, 0x82]) + size.to_bytes(2)
    return head + content


def number(value: int) -> bytes:
    return der(2, value.to_bytes((value.bit_length() + 8) // 8))


def key_of(*numbers: int, body_bytes: int = 200) -> str:
    """The outside of an encrypted key that is hashed by these numbers."""
    hashing = der(0x30, HASHED, der(0x30, der(4, b"12345678"), *map(number, numbers)))
    whole = der(0x30, der(0x30, HASHED, der(0x30, hashing)), der(4, bytes(body_bytes)))
    text = base64.encodebytes(whole).decode()
    return f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{text}-----END ENCRYPTED PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    "host", ["shop.test", "*.shop.test", "10.0.0.?", "::1", "api[12].shop.test", "*:8443", "*"]
)
def test_a_host_is_a_name_an_address_or_a_glob(host: str) -> None:
    assert host_problem(host) is None


@pytest.mark.parametrize(
    "host", ["https://shop.test", "shop.test/a", "{a,b}.test", "a b", "ä.test"]
)
def test_what_would_match_nothing_is_no_host(host: str) -> None:
    assert host_problem(host) is not None


def test_all_certificates_fit_into_a_job() -> None:
    assert together_problem(MAX_TOGETHER_BYTES) is None
    assert together_problem(MAX_TOGETHER_BYTES + 1) is not None


@pytest.mark.parametrize("numbers", [(2048,), (600_000, 32), (1_000_000, 32), (131_072, 8, 1)])
def test_a_key_that_opens_soon_is_taken(numbers: tuple[int, ...]) -> None:
    assert cost_problem(key_of(*numbers)) is None


@pytest.mark.parametrize(
    "numbers",
    [
        (1_000_001,),
        (1 << 31, 32),
        (1 << 17, 64, 16),
        (1 << 80,),
        (1 << 18, 8, 1),
        (1 << 18, 8, 1, 32),
        (1 << 14, 8, 9),
    ],
)
def test_a_key_that_would_hold_the_service_up_is_refused(numbers: tuple[int, ...]) -> None:
    assert cost_problem(key_of(*numbers)) is not None


@pytest.mark.parametrize("hidden", ["Proc-Type: 4\n\n", "Comment: x\n\n", "-\n"])
def test_a_costly_key_hides_behind_no_header(hidden: str) -> None:
    first, _, rest = key_of(1 << 24, 8, 1).partition("\n")
    assert cost_problem(f"{first}\n{hidden}{rest}") is not None


def test_each_of_several_keys_must_open_soon() -> None:
    assert cost_problem(key_of(2048) + key_of(1 << 24, 8, 1)) is not None


def test_a_key_of_sequences_without_an_end_is_judged_too() -> None:
    nested = base64.b64encode(b"\x30\x82\xff\xff" * 1500).decode()
    key = f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{nested}\n-----END ENCRYPTED PRIVATE KEY-----\n"
    assert cost_problem(key) is None


def test_keys_of_usual_programs_are_taken() -> None:
    plain = trustme.CA().private_key_pem.bytes()
    private = load_pem_private_key(plain, None)
    cipher = BestAvailableEncryption(b"open sesame")
    made = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, cipher).decode()
    assert "ENCRYPTED" in made
    assert cost_problem(made) is None
    assert cost_problem(plain.decode()) is None


@pytest.mark.parametrize("inside", ["", "A", "MIIB", "//////////8=", "MIL/////"])
def test_what_is_no_key_at_all_is_for_others_to_tell(inside: str) -> None:
    pem = f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{inside}\n-----END ENCRYPTED PRIVATE KEY-----"
    assert cost_problem(pem) is None
