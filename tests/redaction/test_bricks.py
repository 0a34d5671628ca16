"""What expressions are made of takes runs as a whole, so that searching them stays linear."""

import pytest

from redaction.compiled import compile_once, find_separate
from redaction.encodings import GROWTH
from redaction.policy import HIDDEN
from redaction.replacer import BLOCK_BYTES, SecretPattern

WHOLE = [b"%5c", b"%255c", b"%25255C", b"\\"]
RUNS = [*WHOLE, b"%5C\\", b"%25", b"%2525", b"=3D3D3D", b"#00000000"]


@pytest.mark.parametrize("run", WHOLE, ids=repr)
def test_a_long_run_is_found_once(run: bytes) -> None:
    (growth,) = compile_once(GROWTH)
    text = b"some " + run * 1000 + b" more"
    found = [text[slice(*span)] for span in find_separate(growth, text)]
    assert found == [run * 1000]


@pytest.mark.parametrize("run", RUNS, ids=repr)
def test_a_secret_behind_a_block_of_a_run_is_found_in_time(run: bytes) -> None:
    """Within the 20 s of any test; a quadratic search takes minutes."""
    data = run * (BLOCK_BYTES // len(run))
    hidden, count = SecretPattern(["hunter-two/91"]).hide(data + b" hunter-two%2F91")
    assert (hidden, count) == (data + b" " + HIDDEN.encode(), 1)
