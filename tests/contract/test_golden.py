"""Golden files pin every message of the contract."""

import inspect

import msgspec
import pytest

import contract.agent_api
import contract.evidence
import contract.job
import contract.result
from contract.checks import SPEC_TYPES, CheckType, check_type, deadline_ms, lane
from contract.job import Job
from contract.wire import UnreadableMessageError, Wire, decode
from tests.contract.sample_specs import SPECS
from tests.contract.samples import GOLDEN, MESSAGES, job, written


def meaning(message: msgspec.Struct) -> object:
    """The message as plain values, in which 60 and 60.0 are the same."""
    return msgspec.json.decode(msgspec.json.encode(message))


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_is_written_as_its_golden_file_says(name: str) -> None:
    assert written(MESSAGES[name]) == (GOLDEN / f"{name}.json").read_text()


@pytest.mark.parametrize("name", MESSAGES)
def test_a_golden_file_is_read_back_as_the_same_message(name: str) -> None:
    body = (GOLDEN / f"{name}.json").read_bytes()
    assert meaning(decode(body, type(MESSAGES[name]))) == meaning(MESSAGES[name])


def test_no_golden_file_is_left_without_a_message() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(MESSAGES)


@pytest.mark.parametrize("name", MESSAGES)
def test_unknown_fields_pass(name: str) -> None:
    fields = msgspec.json.decode((GOLDEN / f"{name}.json").read_bytes())
    fields["fromTheFuture"] = {"x": 1}
    again = decode(msgspec.json.encode(fields), type(MESSAGES[name]))
    assert meaning(again) == meaning(MESSAGES[name])


def wire_types() -> set[type[Wire]]:
    modules = (
        contract.agent_api,
        contract.job,
        contract.result,
        contract.evidence,
        contract.evidence,
    )
    members = [value for module in modules for value in vars(module).values()]
    types = {value for value in members if inspect.isclass(value) and issubclass(value, Wire)}
    # What two kinds of evidence have in common is none by itself.
    return types - {contract.evidence.ScriptEvidence}


def test_every_type_of_the_language_stands_in_a_golden_file() -> None:
    seen: set[type] = set()

    def collect(value: object) -> None:
        if isinstance(value, msgspec.Struct):
            seen.add(type(value))
            for field in value.__struct_fields__:
                collect(getattr(value, field))
        elif isinstance(value, tuple | list):
            for item in value:
                collect(item)

    for message in MESSAGES.values():
        collect(message)
    # A job head is the beginning of a job, which has its own golden file.
    assert wire_types() - seen - {Wire, contract.job.JobHead} == set()


def test_values_are_frozen() -> None:
    with pytest.raises(AttributeError):
        job(CheckType.URL).fence = 4  # type: ignore[misc]  # the test is that this is refused


def test_each_check_type_has_its_spec() -> None:
    assert set(SPEC_TYPES) == set(SPECS) == set(CheckType)
    assert {check_type(spec) for spec in SPECS.values()} == set(CheckType)


def test_each_spec_is_tagged_with_its_type() -> None:
    for kind, spec_type in SPEC_TYPES.items():
        assert spec_type.__struct_config__.tag == kind


def test_each_assertion_of_a_sample_has_a_source_that_its_type_knows() -> None:
    for kind, spec in SPECS.items():
        sources = {assertion.source for assertion in getattr(spec, "assertions", ())}
        assert sources <= SPEC_TYPES[kind].sources


def test_only_scripts_take_the_main_lane() -> None:
    lanes = {kind: lane(spec).value for kind, spec in SPECS.items()}
    main = {"API", "BROWSER", "MULTI_STEP", "PLAYWRIGHT", "AGENTIC"}
    assert {kind.value for kind, name in lanes.items() if name == "main"} == main


def test_deadlines_are_30_s_uptime_240_s_scripts_and_30_min_suites() -> None:
    assert deadline_ms(SPECS[CheckType.TCP]) == 30_000
    assert deadline_ms(SPECS[CheckType.BROWSER]) == 240_000
    assert deadline_ms(SPECS[CheckType.PLAYWRIGHT]) == 1_800_000


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b'{"jobId": "1"}', "fence"),
        (b'{"jobId": 1}', "$.jobId"),
        (b"{", "truncated"),
        (b"\xff\xfe", "malformed"),
    ],
)
def test_an_unreadable_message_names_the_wrong_field(body: bytes, path: str) -> None:
    with pytest.raises(UnreadableMessageError, match=path.replace("$", r"\$")):
        decode(body, Job)
