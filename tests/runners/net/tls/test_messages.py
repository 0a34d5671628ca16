"""Certificates are read out of the handshake's own bytes, whatever those hold."""

from hypothesis import given
from hypothesis import strategies as st

from runners.net.tls.certificates import is_certificate_message, read_chain

CHAINS = st.lists(st.binary(min_size=1, max_size=300), max_size=5)


def sized(content: bytes, length_bytes: int = 3) -> bytes:
    """The content behind its length."""
    return len(content).to_bytes(length_bytes, "big") + content


def message(content: bytes) -> bytes:
    """A Certificate message."""
    return b"\x0b" + sized(content)


@given(CHAINS)
def test_the_chain_of_tls_1_2_is_read(chain: list[bytes]) -> None:
    assert read_chain(message(sized(b"".join(map(sized, chain))))) == tuple(chain)


@given(CHAINS, st.binary(max_size=40))
def test_the_chain_of_tls_1_3_is_read_without_its_extensions(
    chain: list[bytes], extensions: bytes
) -> None:
    entries = b"".join(sized(one) + sized(extensions, 2) for one in chain)
    assert read_chain(message(b"\x00" + sized(entries))) == tuple(chain)


@given(st.binary(max_size=200))
def test_rubbish_is_no_crash(rubbish: bytes) -> None:
    read_chain(rubbish)
    read_chain(message(sized(rubbish)))
    read_chain(message(b"\x00" + sized(rubbish)))


def test_a_certificate_that_is_cut_off_is_left_out() -> None:
    entries = sized(b"whole") + b"\x00\x00\x09half"
    assert read_chain(message(sized(entries))) == (b"whole",)


def test_only_a_certificate_message_is_taken_for_one() -> None:
    assert is_certificate_message(message(sized(b"")))
    assert not is_certificate_message(b"\x0f" + sized(b"verify"))
    assert not is_certificate_message(b"\x0b")
    assert not is_certificate_message(b"")
