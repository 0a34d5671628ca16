import pytest

from contract.near_names import near_name


@pytest.mark.parametrize(
    ("name", "meant"),
    [("baseUrl", "baseURL"), ("timeOut", "timeout"), ("freqency", "frequency"), ("workers", None)],
)
def test_a_slip_of_the_pen_is_understood(name: str, meant: str | None) -> None:
    assert near_name(name, ("baseURL", "timeout", "frequency", "use")) == meant
