import pytest

from contract.targets import is_accepted, status_codes_problem


@pytest.mark.parametrize(
    ("accepted", "passing", "failing"),
    [
        (("429",), (429,), (200, 428, 430)),
        (("200-299",), (200, 250, 299), (199, 300)),
        (("4xx",), (400, 499), (399, 500)),
        (("2XX", "429"), (200, 429), (404,)),
        (("200-200",), (200,), (201,)),
        ((), (), (200, 404)),
    ],
)
def test_codes_ranges_and_classes_are_accepted(
    accepted: tuple[str, ...], passing: tuple[int, ...], failing: tuple[int, ...]
) -> None:
    assert all(is_accepted(status, accepted) for status in passing)
    assert not any(is_accepted(status, accepted) for status in failing)
    assert all(status_codes_problem(text) is None for text in accepted)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty; use a code, a range or a class"),
        ("ok", "is ok; use a code"),
        ("20x", "is 20x; use a code"),
        ("0xx", "is 0xx; use a code"),
        ("99", "is 99; use a code"),
        ("2000", "is 2000; use a code"),
        ("200-", "is 200-; use a code"),
        ("299-200", "is 299-200, which holds no code; write the lower one first"),
    ],
)
def test_what_is_no_status_is_refused_with_the_remedy(text: str, words: str) -> None:
    assert (status_codes_problem(text) or "").startswith(words)
