"""What an observation says when a target could not be reached through the gate."""

import pytest

from contract.result import Failure, FailureKind
from runners.scripting.playwright.evidence import add_proxy_cause
from runners.scripting.proxy.egress_proxy import UnreachedTarget

TUNNEL = "page.goto: net::ERR_TUNNEL_CONNECTION_FAILED at https://{}/a?b=https://c.test/ (x.js:3)"
REFUSED = UnreachedTarget(
    host="counts.test", kind=FailureKind.EGRESS, why="counts.test is refused."
)
DOWN = UnreachedTarget(host="shop.test", kind=FailureKind.CONNECT, why="shop.test did not answer.")


def a_failure(message: str) -> Failure:
    return Failure(kind=FailureKind.SCRIPT, message=message, detail={"where": "x.js:3"})


def test_a_target_that_is_down_is_not_blamed_on_another_that_was_refused() -> None:
    failure = a_failure(TUNNEL.format("shop.test:8443"))
    told = add_proxy_cause(failure, (REFUSED, DOWN))
    assert told is not None
    assert told.kind is FailureKind.SCRIPT
    assert told.message == f"shop.test did not answer.\n{failure.message}"


@pytest.mark.parametrize("host", ["counts.test", "COUNTS.test:99", "me:secret@counts.test"])
def test_a_target_that_the_rules_refuse_fails_for_that(host: str) -> None:
    told = add_proxy_cause(a_failure(TUNNEL.format(host)), (DOWN, REFUSED))
    assert told == Failure(
        kind=FailureKind.EGRESS, message="counts.test is refused.", detail={"where": "x.js:3"}
    )


def test_a_target_that_leads_to_the_only_one_that_is_refused_fails_for_that() -> None:
    told = add_proxy_cause(a_failure(TUNNEL.format("leads.test")), (REFUSED,))
    assert told is not None
    assert told.kind is FailureKind.EGRESS


@pytest.mark.parametrize(
    ("message", "unreached"),
    [
        (TUNNEL.format("other.test"), (REFUSED, DOWN)),
        (TUNNEL.format("other.test"), ()),
        (TUNNEL.format("[no"), (REFUSED, DOWN)),
        ("expect(received).toBe(expected)", (REFUSED,)),
    ],
)
def test_a_failure_whose_cause_is_not_known_stays_as_it_is(
    message: str, unreached: tuple[UnreachedTarget, ...]
) -> None:
    failure = a_failure(message)
    assert add_proxy_cause(failure, unreached) is failure
