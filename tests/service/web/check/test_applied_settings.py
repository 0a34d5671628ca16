from typing import Any

import pytest

from service.web.check.applied_settings import describe_retries


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        ({"type": "SINGLE_RETRY", "baseBackoffSeconds": 0}, "one, at once"),
        ({"type": "SINGLE_RETRY", "baseBackoffSeconds": 1.5}, "one, after 1.5 s"),
        ({"type": "FIXED", "baseBackoffSeconds": 0, "maxRetries": 3}, "up to 3, each at once"),
        ({"type": "LINEAR", "baseBackoffSeconds": 0}, "up to 2, each at once"),
        ({"type": "FIXED", "baseBackoffSeconds": 60}, "up to 2, 1 min apart"),
        (
            {"type": "EXPONENTIAL", "baseBackoffSeconds": 5},
            "up to 2, 5.0 s apart, growing exponentially",
        ),
    ],
)
def test_retries_are_said_in_words_and_without_a_pause_of_nothing(
    strategy: dict[str, Any], said: str
) -> None:
    assert describe_retries({"maxRetries": None, **strategy}) == said
