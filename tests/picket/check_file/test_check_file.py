from pathlib import Path

import pytest

from contract.assertions import Assertion, Comparison, Source
from contract.checks import (
    SPEC_TYPES,
    ApiSpec,
    CheckType,
    HeartbeatSpec,
    IcmpSpec,
    TcpSpec,
    UrlSpec,
)
from contract.job import Variable
from contract.requests import HttpMethod
from picket.check_file.load import load, parse
from picket.errors import CommandError, ExitCode
from runners.registry import RUNNABLE

BAD_FILES = Path(__file__).parents[1] / "bad_files"
TYPES = ", ".join(sorted(RUNNABLE))

REFUSED = {
    "assertions_twice.yaml": ": $.request.assertions conflicts with $.assertions; keep one of them",
    "broken_json.json": " is not valid JSON: line 1, column 16: Expecting ',' delimiter",
    "broken_yaml.yaml": (
        " is not valid YAML: line 2, column 13: mapping values are not allowed here"
    ),
    "certificate_without_key.yaml": ": $.clientCertificates[0].key is missing",
    "empty.yaml": " is empty",
    "empty_url.yaml": ": $.request.url is empty; its length must be at least 1",
    "endless_alias.yaml": " is nested deeper than 40 levels",
    "exploding_aliases.yaml": " has more than 50000 values",
    "header_is_text.yaml": ": $.request.headers[0] is text; use an object",
    "key_said_twice.yaml": " has request twice: again in line 4; keep one of them",
    "list_of_checks.json": " has a list of 1; put each check into its own file",
    "loss_above_all.yaml": ": $.maxPacketLossThreshold is 101; use at most 100",
    "misspelt_field.yaml": ": $.request.skipSsl is not a field here; did you mean skipSSL?",
    "misspelt_section.yaml": ": $.asertions is not a field here; did you mean assertions?",
    "no_period.yaml": ": $.periodSeconds is missing",
    "no_port.yaml": ": $.request.port is missing",
    "no_request.yaml": ": $.request is missing",
    "no_type.yaml": f": $.type is missing; use one of {TYPES}",
    "no_url.yaml": ": $.request.url is missing",
    "not_utf8.yaml": " is not UTF-8 text (byte 20)",
    "only_a_word.yaml": " has URL; a check is an object with a type",
    "password_is_a_number.yaml": ": $.request.basicAuth.password is a number; use text",
    "period_is_text.yaml": ": $.heartbeat.period is hourly; use a number of hours",
    "period_too_short.yaml": ": $.heartbeat.period is 10 seconds; use at least 30 seconds",
    "port_is_text.yaml": ": $.request.port is http; use a whole number",
    "port_out_of_range.yaml": ": $.request.port is 99999; use at most 65535",
    "python_object.yaml": (
        " is not valid YAML: line 1, column 7: could not determine a constructor for the tag"
        " 'tag:yaml.org,2002:python/name:os.system'"
    ),
    "request_is_text.yaml": ": $.request is http://127.0.0.1/; use an object",
    "snippet_without_a_service.json": (
        ": $.setupSnippetId refers to a snippet of a service; `picket run` has no service"
    ),
    "source_of_another_type.yaml": (
        ": $.assertions[1].source is JSON_BODY; a check of type URL takes"
        " DAYS_TO_EXPIRY, REMOTE_ADDRESS, STATUS_CODE, TLS_VERSION"
    ),
    "tab_for_indentation.yaml": (
        " is not valid YAML: line 3, column 1: found character '\\t' that cannot start any token"
    ),
    "text_for_a_flag.yaml": ": $.request.followRedirects is yes; use true or false",
    "threshold_is_text.yaml": ": $.maxResponseTime is slow; use a number or nothing",
    "threshold_too_large.yaml": ": $.maxResponseTime is 60000; use at most 30000",
    "too_many_pings.yaml": ": $.request.pingCount is 51; use at most 50",
    "two_documents.yaml": " has 2 documents; put each check into its own file",
    "unknown_comparison.yaml": (
        ": $.request.assertions[0].comparison is IS; use one of CONTAINS, EQUALS, GREATER_THAN,"
        " HAS_KEY, HAS_VALUE, IS_EMPTY, IS_NULL, LESS_THAN, NOT_CONTAINS, NOT_EMPTY, NOT_EQUALS,"
        " NOT_HAS_KEY, NOT_HAS_VALUE, NOT_NULL"
    ),
    "unknown_method.yaml": (
        ": $.request.method is FETCH; use one of DELETE, GET, HEAD, PATCH, POST, PUT"
    ),
    "unknown_record_type.yaml": (
        ": $.request.recordType is AAAAA; use one of A, AAAA, CAA, CNAME, DNSKEY, DS, HTTPS, MX,"
        " NAPTR, NS, PTR, SOA, SRV, SVCB, TLSA, TXT"
    ),
    "unknown_source.yaml": (
        ": $.request.assertions[0].source is STATUS; a check of type URL takes"
        " DAYS_TO_EXPIRY, REMOTE_ADDRESS, STATUS_CODE, TLS_VERSION"
    ),
    "unknown_type.yaml": f": $.type is FTP; use one of {TYPES}",
    "unknown_unit.yaml": (
        ": $.heartbeat.periodUnit is weeks; use one of seconds, minutes, hours, days"
    ),
    "url_is_a_number.yaml": ": $.request.url is 8080; use text",
    "variable_without_value.yaml": ": $.variables[0].value is missing",
    "variables_are_text.yaml": ": $.variables is text; use a list",
    "comparison_of_another_source.yaml": (
        ": $.assertions[0].comparison is HAS_KEY; STATUS_CODE takes CONTAINS, EQUALS, GREATER_THAN,"
        " IS_EMPTY, IS_NULL, LESS_THAN, NOT_CONTAINS, NOT_EMPTY, NOT_EQUALS, NOT_NULL"
    ),
    "header_regex_open.yaml": (
        ": $.request.assertions[0].regex is not a valid regular expression: missing ): ("
    ),
    "host_with_port.yaml": (
        ": $.request.hostname is 127.0.0.1:25, which must not contain a port; use the field port"
    ),
    "jsonpath_that_ends_early.yaml": (
        ": $.assertions[0].property is not a valid JSONPath: unbalanced brackets"
    ),
    "name_server_with_port.yaml": (
        ": $.request.nameServer is 10.0.0.53:5353, which must not contain a port; "
        "use the field port"
    ),
    "regex_with_look_behind.yaml": (
        ": $.assertions[0].property is not a valid regular expression: invalid perl operator: (?<="
        " (look-around and back-references are not available here)"
    ),
    "target_is_no_number.yaml": (
        ": $.assertions[0].target must be a number, as STATUS_CODE is one"
    ),
    "url_port_out_of_range.yaml": (
        ": $.request.url has an invalid port; use a number from 1 to 65535"
    ),
    "url_without_scheme.yaml": (
        ": $.request.url must begin with http:// or https:// or a {{VARIABLE}}"
    ),
}


def refusal(text: str) -> str:
    with pytest.raises(CommandError) as refused:
        parse(text, "check.yaml")
    return refused.value.message


@pytest.mark.parametrize("name", sorted(path.name for path in BAD_FILES.iterdir()))
def test_a_bad_file_is_refused_with_its_field_and_its_value(name: str) -> None:
    with pytest.raises(CommandError) as refused:
        load(str(BAD_FILES / name))
    assert refused.value.message == f"{BAD_FILES / name}{REFUSED[name]}"
    assert refused.value.code is ExitCode.BAD_INPUT


def test_all_wrong_fields_of_a_file_are_told_at_once() -> None:
    said = refusal(
        """
        type: API
        name: [1]
        request:
          method: FETCH
          skipSsl: true
          headers: [{ key: a, value: b }, text, { key: c, value: [1] }]
        assertions:
          - { source: STATUS, comparison: EQUALS, target: 200 }
          - { source: STATUS_CODE, comparison: IS, target: 200 }
        maxResponseTime: 60000
        variables: [{ key: A }, { key: B, value: b }, { value: c }]
        proxyUrl: 8
        """
    )
    fields = [line.removeprefix("check.yaml: $.").split(" is ")[0] for line in said.splitlines()]
    assert fields == [
        "name",
        "request.skipSsl",
        "assertions[0].source",
        "request.method",
        "request.headers[1]",
        "request.headers[2].value",
        "request.url",
        "assertions[1].comparison",
        "maxResponseTime",
        "variables[0].value",
        "variables[2].key",
        "proxyUrl",
    ]


def test_all_that_makes_no_sense_is_told_at_once() -> None:
    said = refusal(
        """
        type: URL
        request: { url: ftp://a }
        assertions:
          - { source: STATUS_CODE, comparison: EQUALS, target: fine }
          - { source: STATUS_CODE, comparison: HAS_KEY, target: 1 }
        """
    )
    assert [line.split()[1] for line in said.splitlines()] == [
        "$.request.url",
        "$.assertions[0].target",
        "$.assertions[1].comparison",
    ]


def test_every_wrong_part_of_the_public_form_is_told() -> None:
    heartbeat = "{ period: hourly, periodUnit: hours, grace: 5, graceUnit: weeks }"
    said = refusal(f"type: HEARTBEAT\nsetupSnippetId: 3\nheartbeat: {heartbeat}")
    assert said.splitlines() == [
        (
            "check.yaml: $.setupSnippetId refers to a snippet of a service; "
            "`picket run` has no service"
        ),
        "check.yaml: $.heartbeat.period is hourly; use a number of hours",
        "check.yaml: $.heartbeat.graceUnit is weeks; use one of seconds, minutes, hours, days",
    ]
    said = refusal("type: HEARTBEAT\nheartbeat: hourly\npingTokn: a")
    assert said.splitlines() == [
        "check.yaml: $.heartbeat must have period, periodUnit, grace and graceUnit",
        "check.yaml: $.pingTokn is not a field here; did you mean pingToken?",
    ]


def test_a_thousand_wrong_entries_are_told_by_the_first_ones() -> None:
    entries = ", ".join("{ key: A }" for _ in range(1000))
    said = refusal(f"type: URL\nrequest: {{ url: http://a }}\nvariables: [{entries}]")
    assert len(said.splitlines()) == 21
    assert said.endswith("check.yaml: 980 more fields are wrong")


def test_a_field_cannot_forge_a_line() -> None:
    said = refusal('{"type": "URL", "request": {"url": "http://a"}, "a\\nb": 1}')
    assert said.startswith("check.yaml: $.a b is not a field here; ")
    assert len(said.splitlines()) == 1


def test_every_sentence_of_the_table_has_its_file() -> None:
    assert {path.name for path in BAD_FILES.iterdir()} == set(REFUSED)


def test_a_secret_in_a_bad_file_is_never_repeated() -> None:
    for name in ("header_is_text.yaml", "variables_are_text.yaml", "password_is_a_number.yaml"):
        assert "hunter2" not in REFUSED[name]
        assert "48151623" not in REFUSED[name]
    assert "hunter2" not in refusal("type: URL\nrequest: http://ops:hunter2@127.0.0.1/\n")
    assert "hunter2" not in refusal(
        '{"type": "URL", "proxyUrl": ["hunter2"], "request": {"url": "x"}}'
    )


@pytest.mark.parametrize(
    "wrong",
    [
        "variables: [TOKEN=hunter2]",
        "environmentVariables: [TOKEN=hunter2]",
        "variables: [{ key: TOKEN, value: x, secret: hunter2 }]",
        "clientCertificates: [hunter2]",
    ],
)
def test_nothing_of_an_entry_that_may_be_secret_is_repeated(wrong: str) -> None:
    said = refusal(f"type: URL\nrequest: {{ url: http://a }}\n{wrong}")
    assert "hunter2" not in said
    assert " is text; use " in said


def test_a_file_that_is_missing_or_no_file_is_refused() -> None:
    for path, sentence in (
        ("/nowhere/check.yaml", "/nowhere/check.yaml cannot be read: No such file or directory"),
        ("/", "/ cannot be read: Is a directory"),
    ):
        with pytest.raises(CommandError, match=f"^{sentence}$"):
            load(path)


def test_a_huge_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    huge = tmp_path / "huge.yaml"
    huge.write_bytes(b"#" * (2 * 1024 * 1024))
    with pytest.raises(CommandError, match="is larger than 1048576 bytes"):
        load(str(huge))


def test_the_contracts_form_and_the_public_form_mean_the_same() -> None:
    contract = parse(
        """
        type: API
        request: { url: "http://127.0.0.1/", method: POST }
        assertions: [{ source: STATUS_CODE, comparison: EQUALS, target: "201" }]
        maxResponseTime: 900
        """,
        "a.yaml",
    )
    public = parse(
        """{"name": "Unnamed", "checkType": "API", "frequency": 10, "frequencyOffset": 3,
        "locations": ["eu-west-1"], "alertSettings": {"escalationType": "RUN_BASED"},
        "doubleCheck": true, "maxResponseTime": 900,
        "request": {"url": "http://127.0.0.1/", "method": "POST", "assertions":
          [{"source": "STATUS_CODE", "comparison": "EQUALS", "target": 201, "regex": ""}]}}""",
        "b.json",
    )
    assert public == contract
    assert isinstance(public.spec, ApiSpec)
    assert public.spec.request.method is HttpMethod.POST
    assert public.spec.assertions == (
        Assertion(source=Source.STATUS_CODE, comparison=Comparison.EQUALS, target="201"),
    )


def test_a_heartbeat_of_the_public_form_is_counted_in_seconds() -> None:
    found = parse(
        """
        type: HEARTBEAT
        heartbeat:
          { period: 1, periodUnit: hours, grace: 5, graceUnit: minutes, silentForSeconds: 4000 }
        """,
        "heartbeat.yaml",
    )
    assert isinstance(found.spec, HeartbeatSpec)
    assert (found.spec.period_s, found.spec.grace_s, found.spec.silent_for_s) == (3600, 300, 4000)


def test_a_heartbeat_as_the_public_api_shows_it_can_be_read() -> None:
    found = parse(
        """{"checkType": "HEARTBEAT", "shouldFail": false, "setupSnippetId": null, "heartbeat":
        {"period": 1, "periodUnit": "hours", "grace": 0, "graceUnit": "minutes",
         "pingToken": "nightly", "pingUrl": "http://127.0.0.1/ping/nightly"}}""",
        "shown.json",
    )
    assert isinstance(found.spec, HeartbeatSpec)
    assert found.spec.ping_token == "nightly"


def test_the_scripts_of_the_public_form_are_kept() -> None:
    found = parse(
        "type: API\nrequest: { url: 'http://a' }\nlocalSetupScript: 'let a'", "scripted.yaml"
    )
    assert isinstance(found.spec, ApiSpec)
    assert found.spec.setup_script == "let a"


def test_variables_may_be_a_list_or_a_map() -> None:
    head = "type: URL\nrequest: { url: 'http://127.0.0.1/{{PATH}}' }\n"
    as_list = parse(head + "variables: [{ key: PORT, value: 80, secret: true }]", "list.yaml")
    as_map = parse(head + "variables: { PATH: shop, OPEN: true, DATE: 2026-01-01 }", "map.yaml")
    assert as_list.variables == (Variable(key="PORT", value="80", secret=True),)
    assert as_map.variables == (
        Variable(key="PATH", value="shop"),
        Variable(key="OPEN", value="true"),
        Variable(key="DATE", value="2026-01-01"),
    )


def test_a_type_may_be_written_in_lower_case() -> None:
    found = parse("type: tcp\nrequest: { hostname: 127.0.0.1, port: 80 }", "tcp.yaml")
    assert isinstance(found.spec, TcpSpec)
    assert found.name == "Unnamed"


def test_what_yaml_1_1_would_bend_stays_text() -> None:
    found = parse(
        "type: API\nname: no\nrequest: { url: http://a, headers: [{ key: x-at, value: 12:30 }] }",
        "country.yaml",
    )
    assert isinstance(found.spec, ApiSpec)
    assert found.name == "no"
    assert found.spec.request.headers[0].value == "12:30"


@pytest.mark.parametrize("kind", list(CheckType))
def test_every_type_of_the_language_can_be_read(kind: CheckType) -> None:
    needs = {
        CheckType.TCP: "request: { hostname: a, port: 1 }",
        CheckType.DNS: "request: { query: a.test, recordType: A }",
        CheckType.ICMP: "request: { hostname: a }",
        CheckType.HEARTBEAT: "periodSeconds: 60\ngraceSeconds: 5\npingToken: nightly",
        CheckType.BROWSER: "script: '1'",
        CheckType.MULTI_STEP: "script: '1'",
        CheckType.PLAYWRIGHT: "suiteFolder: .",
        CheckType.AGENTIC: "prompt: look",
    }
    found = parse(f"type: {kind}\n{needs.get(kind, 'request: { url: http://a }')}", "any.yaml")
    assert type(found.spec) is SPEC_TYPES[kind]


def test_thresholds_may_be_switched_off_with_null() -> None:
    found = parse("type: URL\nrequest: { url: http://a }\nmaxResponseTime: null", "off.yaml")
    assert isinstance(found.spec, UrlSpec)
    assert found.spec.failed_after_ms is None


def test_merge_keys_and_aliases_of_yaml_work() -> None:
    found = parse(
        "type: ICMP\nrequest: { <<: { hostname: 127.0.0.1 }, pingCount: 2 }", "merged.yaml"
    )
    assert isinstance(found.spec, IcmpSpec)
    assert (found.spec.request.hostname, found.spec.request.ping_count) == ("127.0.0.1", 2)
