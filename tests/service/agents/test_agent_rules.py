import pytest

from service.agents.presence import is_too_old


@pytest.mark.parametrize(
    ("version", "too_old"),
    [
        ("1.2.0", False),
        ("1.10.0", False),
        ("2", False),
        ("1.2.0+build7", False),
        ("1.2.0-rc1", False),
        ("1.1.99", True),
        ("1.2", True),
        ("0", True),
        ("", True),
        ("unknown", True),
    ],
)
def test_versions_compare_by_their_numbers(version: str, too_old: bool) -> None:  # noqa: FBT001 - a table's column
    assert is_too_old(version, minimum="1.2.0") is too_old
