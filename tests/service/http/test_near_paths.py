"""A slip of the pen in a path is told what may have been meant."""

from difflib import SequenceMatcher

import pytest

from service.http import error_responses
from service.http.error_responses import suggest_path

KNOWN = [
    "/v1/checks",
    "/v1/checks/api",
    "/v1/checks/browser",
    "/v1/checks/browser/{check_id}",
    "/v1/checks/{check_id}",
    "/v1/check-results/{check_id}",
]


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/v1/checks/browsr", "/v1/checks/browser"),
        ("/v1/checks/browsers", "/v1/checks/browser"),
        ("/v1/checks/Api", "/v1/checks/api"),
        ("/v1/chekcs", "/v1/checks"),
        ("/v1/checks/browsr/17", "/v1/checks/browser/17"),
        ("/v1/check-result/17", "/v1/check-results/17"),
        ("/v1/checks/", "/v1/checks"),
        ("/v1/checks/browser/17/", "/v1/checks/browser/17"),
        ("/v1/checks/0d9c7d0e", None),
        ("/v1/checks/browser", None),
        ("/v1/dashboards", None),
        ("/v1", None),
        ("/", None),
    ],
)
def test_the_path_that_is_most_alike_is_meant(path: str, meant: str | None) -> None:
    known = [one for one in KNOWN if one != "/v1/checks/{check_id}"]
    assert suggest_path(path, known) == meant


def test_a_path_that_is_there_means_no_other() -> None:
    assert suggest_path("/v1/checks/api", ["/v1/checks/{check_id}"]) is None


def test_no_part_is_compared_that_is_much_longer_than_any_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[str] = []

    class Counting(SequenceMatcher[str]):
        def ratio(self) -> float:
            compared.append(self.a)
            return super().ratio()

    monkeypatch.setattr(error_responses, "SequenceMatcher", Counting)
    huge = "skcehc" * 10_000
    assert suggest_path(f"/v1/{huge}", KNOWN) is None
    assert suggest_path(f"/v1/chekcs/{huge}", KNOWN) == f"/v1/checks/{huge}"
    assert set(compared) <= {"", "v1", "chekcs"}
