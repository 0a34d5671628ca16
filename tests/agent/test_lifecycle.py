"""Where the agent is in its life, and why it is not ready."""

from agent.lifecycle import Stage
from tests.builders.agents import a_lifecycle


def test_an_agent_is_ready_only_after_its_start() -> None:
    lifecycle = a_lifecycle()
    assert lifecycle.unready_because() == "The agent is starting."
    lifecycle.ready()
    assert lifecycle.unready_because() is None


def test_the_first_request_to_stop_drains_at_once() -> None:
    lifecycle = a_lifecycle()
    lifecycle.ready()
    lifecycle.request_stop()
    assert lifecycle.is_draining
    assert not lifecycle.cancelling.is_set()
    assert lifecycle.unready_because() == "The agent is draining."


def test_the_second_request_cancels_and_the_third_exits() -> None:
    exits: list[int] = []
    lifecycle = a_lifecycle(exit_at_once=lambda: exits.append(1))
    lifecycle.request_stop()
    lifecycle.request_stop()
    assert lifecycle.cancelling.is_set()
    assert exits == []
    lifecycle.request_stop()
    assert exits == [1]


def test_readiness_never_comes_back_once_draining() -> None:
    lifecycle = a_lifecycle()
    lifecycle.request_stop()
    lifecycle.ready()
    assert lifecycle.stage is Stage.DRAINING
    lifecycle.stopped()
    assert lifecycle.unready_because() == "The agent is stopped."


def test_readiness_goes_when_the_service_stays_away_and_comes_back_with_it() -> None:
    now = 100.0
    lifecycle = a_lifecycle(ready_grace_s=60, clock=lambda: now)
    lifecycle.ready()
    lifecycle.service_away()
    now = 159.0
    lifecycle.service_away()
    assert lifecycle.unready_because() is None
    now = 161.0
    assert lifecycle.unready_because() == "The service has not answered for 61 s."
    lifecycle.service_answered()
    assert lifecycle.unready_because() is None


def test_a_refused_key_makes_unready_at_once() -> None:
    lifecycle = a_lifecycle()
    lifecycle.ready()
    lifecycle.service_refused("The key is not known.")
    assert lifecycle.unready_because() == "The key is not known."
    lifecycle.service_answered()
    assert lifecycle.unready_because() is None
