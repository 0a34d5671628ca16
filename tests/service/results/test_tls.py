"""What is read of a certificate is what the whole result says."""

from typing import get_args

import pytest

from contract.evidence import BrowserEvidence, HttpEvidence, SentRequest, TlsFacts
from contract.result import (
    Evidence,
    HeartbeatEvidence,
    Outcome,
    Status,
    TcpEvidence,
)
from contract.wire import UnreadableMessageError, encode
from service.results.store import TYPES_WITH_TLS, days_to_expiry
from tests.builders.stored_results import a_record

CHECK = {"id": "c-1", "checkType": "URL"}
SENT = SentRequest(method="GET", url="https://shop.example")
SEEN = TlsFacts(verified=True, days_to_expiry=29.9)


@pytest.mark.parametrize(
    ("evidence", "days"),
    [
        (HttpEvidence(request=SENT, tls=SEEN), 29.9),
        (TcpEvidence(hostname="shop.example", port=443, tls=SEEN), 29.9),
        (HttpEvidence(request=SENT, tls=TlsFacts(verified=True, days_to_expiry=-2.5)), -2.5),
        (HttpEvidence(request=SENT, tls=TlsFacts(verified=False)), None),
        (HttpEvidence(request=SENT), None),
        (HeartbeatEvidence(period_s=60, grace_s=30), None),
        (None, None),
    ],
)
def test_the_days_are_those_of_the_certificate_that_was_seen(
    evidence: Evidence | None, days: float | None
) -> None:
    outcome = Outcome(status=Status.PASSED, evidence=evidence)
    body = a_record(CHECK, location_id="l-1", outcome=outcome).body
    assert body is not None
    assert days_to_expiry(body) == days


def test_what_is_no_result_is_told() -> None:
    with pytest.raises(UnreadableMessageError):
        days_to_expiry(encode(SENT))


def test_the_types_whose_results_tell_of_tls_are_all_that_there_are() -> None:
    with_tls = [one for one in get_args(Evidence) if "tls" in one.__struct_fields__]
    assert with_tls == [HttpEvidence, TcpEvidence, BrowserEvidence]
    assert TYPES_WITH_TLS == ("API", "BROWSER", "TCP", "URL")
