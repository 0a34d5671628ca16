"""What a suite tells of the moment in which it is stopped."""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from contract.suite_evidence import SuiteTest

_Text = Annotated[str, msgspec.Meta(max_length=4096)]


class Prepares(msgspec.Struct, frozen=True, tag_field="fact", tag="prepares"):
    """What its configuration starts before the tests."""

    servers: Annotated[tuple[_Text, ...], msgspec.Meta(max_length=5)] = ()
    """Its web servers, by program and address."""
    setup: _Text | None = None
    """File of its global setup. None: there is none."""
    teardown: _Text | None = None
    """File of its global teardown. None: there is none."""


class InSetup(msgspec.Struct, frozen=True, tag_field="fact", tag="inSetup"):
    """Its global setup has begun."""


class InTeardown(msgspec.Struct, frozen=True, tag_field="fact", tag="inTeardown"):
    """Its global teardown has begun."""


class Awake(msgspec.Struct, frozen=True, tag_field="fact", tag="awake"):
    """A process hears that it is to end, so nothing in it holds everything up."""

    worker: int
    """-1: the test runner."""


class Hang(msgspec.Struct, frozen=True, tag_field="fact", tag="hung", rename="camel"):
    """What a test was in when the suite was stopped, or its own time was up."""

    test: _Text
    worker: int
    step: _Text | None = None
    """None: in none."""
    step_where: _Text | None = None
    inside: _Text | None = None
    """The hook, fixture or step of the user's around it. None: there is none."""
    last: _Text | None = None
    """The step that ended last. None: none did."""
    last_where: _Text | None = None


StopFact = Prepares | InSetup | InTeardown | Awake | Hang


class AtStop:
    """What was under way in a suite when it was stopped."""

    def __init__(self) -> None:
        self.is_stopped = False
        self.prepares = Prepares()
        self.is_in_setup = False
        """Its global setup had begun."""
        self.is_in_teardown = False
        """Its global teardown had begun."""
        self.is_prepared = True
        """It was past web server and global setup."""
        self.awake: set[int] = set()
        """Workers that heard that they were to end; -1: the test runner."""
        self.hangs: dict[str, Hang] = {}
        """By the test's id."""
        self.tests: Mapping[str, SuiteTest] = {}
        """By id, those that were under way."""
        self._at_ms: float | None = None
        """When that was, by the calendar. None: it was not stopped."""

    @property
    def waiting_at_ms(self) -> float | None:
        """When it was stopped, and a test's process waited. None: none did, or it was not."""
        return self._at_ms if any(worker >= 0 for worker in self.awake) else None

    def take(self, fact: StopFact) -> None:
        """Note what it tells."""
        match fact:
            case Prepares():
                self.prepares = fact
            case InSetup():
                self.is_in_setup = True
            case InTeardown():
                self.is_in_teardown = True
            case Awake():
                self.awake.add(fact.worker)
            case Hang():
                self.hangs[fact.test] = fact

    def stop(self, tests: Mapping[str, SuiteTest], *, is_prepared: bool, at_ms: float = 0) -> None:
        """It is asked to end while these tests are under way."""
        self.is_stopped, self.is_prepared, self._at_ms = True, is_prepared, at_ms
        self.tests = dict(tests)
