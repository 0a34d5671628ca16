"""What a script says about itself is read defensively: it can write whatever it likes."""

import pytest

from runners.scripting.node.protocol import Broke, Done
from runners.scripting.node.verdict import ScriptFacts


class Heard:
    """Facts, and the secrets that were kept."""

    def __init__(self) -> None:
        self.secrets: list[str] = []
        self.facts = ScriptFacts(began_ms=1000, add_secret=self.secrets.append)

    def hear(self, *lines: bytes) -> bool:
        return [self.facts.take(line) for line in lines][-1]


DONE = b'{"fact":"done","env":{"A":"1"},"printed":false,"request":null,"body":"x"}'
LOG = b'{"fact":"log","afterMs":5,"level":"WARN","message":"low"}'


def test_the_end_of_a_script_is_enough_to_know() -> None:
    heard = Heard()
    assert not heard.hear(b'{"fact":"begun"}', LOG)
    assert heard.hear(DONE)
    assert heard.facts.ending == Done(env={"A": "1"}, printed=False, body="x")


def test_a_script_that_printed_is_waited_for() -> None:
    assert not Heard().hear(DONE.replace(b"false", b"true"))


def test_times_of_log_lines_count_from_the_run() -> None:
    heard = Heard()
    heard.hear(LOG)
    assert (heard.facts.log[0].after_ms, heard.facts.log[0].level) == (1005, "WARN")


@pytest.mark.parametrize(
    "line",
    [
        b"no JSON",
        b"[]",
        b'{"fact":"passed"}',
        b'{"fact":"log","afterMs":-1,"level":"WARN","message":"x"}',
        b'{"fact":"log","afterMs":1,"level":"LOUD","message":"x"}',
        b'{"fact":"log","afterMs":1,"level":"INFO","message":"' + b"x" * 20_000 + b'"}',
        b'{"fact":"done","env":{"A":1},"printed":false}',
        b'{"fact":"done"}',
        b'{"fact":"failed","message":null,"stack":""}',
        b'{"fact":"secret","value":"' + b"x" * 20_000 + b'"}',
        b"\xff",
        b'{"fact":"begun","x":' + b"[" * 100_000,
    ],
)
def test_what_is_no_fact_garbles_the_script(line: bytes) -> None:
    heard = Heard()
    assert heard.hear(line)
    assert heard.facts.is_garbled


def test_a_second_end_garbles_the_script() -> None:
    heard = Heard()
    heard.hear(DONE, b'{"fact":"failed","message":"no","stack":"no"}')
    assert heard.facts.is_garbled


def test_an_error_is_an_end_that_its_process_may_add_to() -> None:
    heard = Heard()
    assert not heard.hear(b'{"fact":"failed","message":"no","stack":"no","place":"setup.js:1:1"}')
    assert heard.facts.ending == Broke(message="no", stack="no", place="setup.js:1:1")


def test_too_many_lines_garble_the_script() -> None:
    heard = Heard()
    heard.hear(*[LOG] * 1002)
    assert len(heard.facts.log) == 1001
    assert heard.facts.is_garbled


def test_secrets_are_kept_as_they_come_up_to_a_limit() -> None:
    heard = Heard()
    heard.hear(*[b'{"fact":"secret","value":"s%d"}' % i for i in range(30)])
    assert heard.secrets == [f"s{i}" for i in range(20)]
    assert heard.facts.is_garbled
