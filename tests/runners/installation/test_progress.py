"""A person who waits reads now and then how far it is."""

import time

import pytest

from runners.installation.progress import Count, progress


def test_what_is_not_counted_to_its_end_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    counts = {"2025.04": Count(3, 3), "2026.04": Count(2, 5)}
    with progress(lambda: counts, every_s=0.01):
        said = ""
        while "packages" not in said:
            time.sleep(0.01)
            said += capsys.readouterr().err
    assert said.splitlines()[0] == "setup: 0 s: 2026.04 has 2 of 5 packages"


def test_nothing_is_said_afterwards(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(dict, every_s=0.01):
        time.sleep(0.05)
    capsys.readouterr()
    time.sleep(0.05)
    assert capsys.readouterr().err == ""
