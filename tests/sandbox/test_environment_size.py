"""Variables that no program can be given are told with the largest one's name."""

import pytest

from contract.result import CheckFailed
from sandbox.spawn import MAX_VARIABLE_BYTES, require_variables


def test_what_fits_is_let_through() -> None:
    require_variables({})
    require_variables({"A": "x" * (MAX_VARIABLE_BYTES - len("A=")), "B": "1"})


def test_bytes_count_not_characters() -> None:
    with pytest.raises(CheckFailed, match=f"The variable A has {MAX_VARIABLE_BYTES + 1} bytes"):
        require_variables({"A": "\u00fc" * ((MAX_VARIABLE_BYTES - 1) // 2)})


def test_many_count_together() -> None:
    with pytest.raises(CheckFailed, match=r"bytes together.* The largest is B.") as refused:
        require_variables({"B": "x" * 100} | {f"V{number}": "x" for number in range(600_000)})
    assert refused.value.failure.detail["code"] == "VARIABLES"


def test_what_is_ours_is_no_fault_of_the_check() -> None:
    require_variables({"PICKET_HARNESS": "x" * 2 * MAX_VARIABLE_BYTES})
