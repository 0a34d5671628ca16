"""Links to traces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.accounts.keys import Pepper
from service.results.assets import RunFile
from service.traces.trace_links import TraceLinks, ViewerAddress

FILE = RunFile(location_id="place", run_id=7, fence=3, name="trace.zip")
PEPPER = Pepper(b"of tests")


def test_a_link_leads_to_its_file_until_it_ends() -> None:
    now_s = [1_000.0]
    links = TraceLinks(PEPPER, lambda: now_s[0])
    token = links.sign(FILE)

    assert links.read(token) == FILE
    now_s[0] += 3_600
    assert links.read(token) is None


def test_a_link_of_another_pepper_leads_nowhere() -> None:
    assert TraceLinks(PEPPER).read(TraceLinks(Pepper(b"another")).sign(FILE)) is None


def test_no_letter_of_a_link_can_be_another_one() -> None:
    links = TraceLinks(PEPPER)
    token = links.sign(FILE)
    for place, letter in enumerate(token[:-1]):
        other = "A" if letter != "A" else "B"
        assert links.read(token[:place] + other + token[place + 1 :]) is None


@given(st.text())
def test_whatever_else_is_sent_leads_nowhere(token: str) -> None:
    assert TraceLinks(PEPPER).read(token) is None


def test_a_name_that_leaves_the_folder_is_none_even_if_it_was_signed() -> None:
    links = TraceLinks(PEPPER)
    out = RunFile(location_id="place", run_id=7, fence=3, name="../../key-pepper")
    assert links.read(links.sign(out)) is None


@pytest.mark.parametrize(
    ("scheme", "host", "origin"),
    [
        ("http", "127.0.0.1", "http://localhost:8083"),
        ("http", "localhost", "http://127.0.0.1:8083"),
        ("http", "picket.example.com", None),
        ("https", "localhost", None),
    ],
)
def test_the_viewer_is_never_at_the_host_of_the_page(
    scheme: str, host: str, origin: str | None
) -> None:
    assert ViewerAddress(port=8083).origin_for(scheme, host) == origin


def test_an_address_that_was_set_is_the_viewers() -> None:
    address = ViewerAddress(port=None, url="https://traces.example.com")
    assert address.origin_for("https", "picket.example.com") == "https://traces.example.com"
    assert ViewerAddress().origin_for("http", "localhost") is None
