from typing import Any

import pytest

from contract.scripts import config_problem


def test_the_documented_parts_may_be_set() -> None:
    config: dict[str, Any] = {
        "timeout": 60_000,
        "use": {
            "baseURL": "https://shop.example",
            "viewport": {"width": 800, "height": 600},
            "extraHTTPHeaders": {"x-a": "b"},
            "permissions": ["geolocation"],
            "ignoreHTTPSErrors": True,
            "deviceScaleFactor": 2,
        },
        "expect": {"timeout": 5000, "toHaveScreenshot": {"maxDiffPixels": 10}},
    }
    assert config_problem(config) is None
    assert config_problem({"use": {"viewport": None}}) is None


@pytest.mark.parametrize("timeout", [0, 240_000])
def test_a_time_out_may_be_none_and_as_long_as_a_run(timeout: int) -> None:
    assert config_problem({"timeout": timeout}) is None


@pytest.mark.parametrize(
    ("config", "path", "words"),
    [
        ({"workers": 4}, "workers", "cannot be set here; use timeout, use, expect"),
        ({"use": {"launchOptions": {}}}, "use.launchOptions", "cannot be set here; use action"),
        ({"use": {"trace": "on"}}, "use.trace", "cannot be set here"),
        ({"expect": {"toPass": {}}}, "expect.toPass", "cannot be set here; use timeout"),
        ({"timeout": "1s"}, "timeout", "must be a number of milliseconds from 0 to 240000"),
        ({"timeout": True}, "timeout", "must be a number"),
        ({"timeout": 240_001}, "timeout", "from 0 to 240000"),
        ({"timeout": -1}, "timeout", "from 0 to 240000"),
        ({"use": []}, "use", "must be an object"),
        ({"use": {"offline": 1}}, "use.offline", "must be true or false"),
        ({"use": {"permissions": "all"}}, "use.permissions", "must be an array of strings"),
        ({"use": {"extraHTTPHeaders": {"a": 1}}}, "use.extraHTTPHeaders", "an object of strings"),
        ({"use": {"viewport": 1}}, "use.viewport", "must be an object or null"),
        ({"use": {"locale": 1}}, "use.locale", "must be a string"),
        ({"use": {"geolocation": {"latitude": float("nan")}}}, "use.geolocation", "no number"),
        ({"use": {"geolocation": {"latitude": 2**60}}}, "use.geolocation", "too large"),
        ({"use": {"locale": "a\0"}}, "use.locale", "contains a NUL"),
        ({"use": {"proxy": {"\ud800": 1}}}, "use.proxy", "half a surrogate pair"),
        ({"use": {"proxy": [[[[[[[[[[1]]]]]]]]]]}}, "use.proxy", "must be an object"),
        (
            {"use": {"proxy": {"a": [[[[[[[[[1]]]]]]]]]}}},
            "use.proxy",
            "is nested deeper than 8 levels",
        ),
        ({"use": {"deviceScaleFactor": "2"}}, "use.deviceScaleFactor", "must be a number"),
    ],
)
def test_a_wrong_field_is_named_by_its_path(config: dict[str, Any], path: str, words: str) -> None:
    found = config_problem(config)
    assert found is not None
    assert found[0] == path
    assert words in found[1]
