"""Where a check says one thing and its suite another, the log says both."""

from typing import Any

import pytest

from contract.checks import PlaywrightSpec
from runners.scripting.suites.run import describe_settings, list_warnings


@pytest.mark.parametrize(
    ("said", "ran", "sentences"),
    [
        ({}, "1.58.2", []),
        ({"playwright_version": "1.58.2"}, "1.58.2", []),
        ({"playwright_version": "v1.58.2"}, "1.58.2", []),
        ({"playwright_version": ""}, "1.58.2", []),
        ({"playwright_version": "1.51.1"}, None, []),
        ({"playwright_version": "1.51.1"}, "1.58.2", ["names Playwright 1.51.1; the suite's"]),
        ({"browsers": ("chromium",)}, "1.58.2", []),
        ({"browsers": ("firefox", "webkit")}, "1.58.2", ["names firefox and webkit; at this"]),
    ],
)
def test_what_does_not_fit_is_said(
    said: dict[str, Any], ran: str | None, sentences: list[str]
) -> None:
    found = list(list_warnings(PlaywrightSpec(bundle_sha256="0" * 64, **said), ran=ran))
    assert len(found) == len(sentences)
    assert all(part in text for part, text in zip(sentences, found, strict=True))


def test_what_was_set_of_the_configuration_is_named() -> None:
    assert describe_settings(()) == "Set for this run: trace: 'on'."
    assert describe_settings(("workers: 4", "retries: 2")) == (
        "Set for this run: trace: 'on', and what the project leaves open: workers: 4, retries: 2."
    )
