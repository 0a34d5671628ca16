from collections import Counter
from typing import Any

import pytest

from contract.checks import AGENT_TYPES, CheckType
from picket.up.agent_types import contains
from picket.up.demo_target import DemoPorts
from picket.up.starter_checks import starter_checks
from service.checks.types.registry import TYPES

PORTS = DemoPorts(http=8001, https=8002, echo=8003, dns=8004)
BODIES = {kind: TYPES[kind].write for kind in AGENT_TYPES if kind is not CheckType.PLAYWRIGHT}
EVERY = starter_checks(PORTS, location="default")


def test_every_type_of_one_look_has_a_starter_check() -> None:
    counts = Counter(check.kind for check in EVERY)
    assert set(counts) == set(BODIES)
    assert 10 <= counts.total() <= 20
    assert any("localSetupScript" in check.body for check in EVERY)


def test_starter_checks_have_different_names() -> None:
    names = [check.name for check in EVERY]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("check", EVERY, ids=lambda check: check.name)
def test_the_service_takes_every_starter_check(check: Any) -> None:
    written = BODIES[check.kind].model_validate(check.body)
    often = check.kind in {CheckType.API, CheckType.TCP} and "localSetupScript" not in check.body
    assert (written.frequency, written.frequency_offset) == ((0, 10) if often else (1, None))
    assert written.private_locations == ["default"]


def test_enough_starter_checks_run_below_a_minute_for_results_to_come_quickly() -> None:
    quick = [c for c in EVERY if c.body["frequency"] == 0]
    assert len(quick) >= 5


def test_an_answer_may_hold_more_than_was_wanted() -> None:
    wanted = {"name": "a", "request": {"url": "b", "assertions": [{"source": "c"}]}}
    answer = {
        "id": 1,
        "name": "a",
        "request": {"url": "b", "assertions": [{"source": "c", "d": 1}]},
    }
    assert contains(answer, wanted)
    assert not contains({**answer, "name": "b"}, wanted)
    assert not contains({**answer, "request": {"url": "b", "assertions": []}}, wanted)
    assert not contains({**answer, "request": None}, wanted)
    assert not contains({"name": "a"}, wanted)
