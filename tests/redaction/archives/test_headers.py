"""Values of sensitive headers: hidden in traces and HAR files by name, elsewhere by value."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from redaction.archives.headers import HeaderRedactor
from redaction.policy import HIDDEN, SENSITIVE_HEADERS
from tests.builders.archives import a_zip, hidden, hidden_bytes, lines, read_members

SECRET = "s3cr3t-T0ken"
TOKEN = "tok-abcdef123456"


@pytest.mark.parametrize(
    "text",
    [
        '{"name":"Authorization","value":"VALUE"}',
        '{"value":"VALUE","name":"authorization"}',
        '{\n  "name": "x-api-key",\n  "value": "VALUE"\n}',
        '{"Proxy-Authorization":"VALUE"}',
        '{"type":"log","message":"  cookie: VALUE"}',
        r'{"message":"call log:\n  - Set-Cookie: VALUE\n  - next"}',
        '{"cookies":[{"name":"a","value":"VALUE"},{"name":"b]","value":"VALUE"}]}',
    ],
)
def test_a_value_is_hidden_by_its_name(text: str) -> None:
    hidden, count = HeaderRedactor(SENSITIVE_HEADERS).hide(
        text.replace("VALUE", r"a \"b\" c").encode()
    )
    assert hidden == text.replace("VALUE", HIDDEN).encode()
    assert count == 1


@pytest.mark.parametrize("within", range(4))
@pytest.mark.parametrize(
    "said",
    [
        {"Authorization": "Bearer TOKEN"},
        {"headers": {"x-api-key": "TOKEN", "accept": "*/*"}},
        {"X-Api-Key": ["TOKEN"]},
        {"cookie": "id=TOKEN; b=c"},
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_value_is_hidden_by_its_name_in_json_that_is_a_text(
    said: Any, within: int, indent: int | None
) -> None:
    text = json.dumps(said, indent=indent)
    for _ in range(within):
        text = json.dumps({"type": "console", "text": text, "after": "stays"})
    hiding = HeaderRedactor(SENSITIVE_HEADERS)
    hiding.collect(text.replace("TOKEN", TOKEN).encode())
    hidden, count = hiding.hide(text.replace("TOKEN", TOKEN).encode())
    assert (TOKEN in hidden.decode(), count, hiding.found) == (False, 1, (TOKEN,))
    for _ in range(within):
        assert json.loads(hidden)["after"] == "stays"
        hidden = json.loads(hidden)["text"]
    json.loads(hidden)


@pytest.mark.parametrize("order", [("name", "value"), ("value", "name")])
def test_lists_of_headers_are_known_in_json_that_is_a_text(order: tuple[str, str]) -> None:
    header = {"name": "Authorization", "value": f"Bearer {TOKEN}"}
    said = json.dumps([{key: header[key] for key in order}, {"name": "a", "value": "b"}], indent=1)
    hidden, count = HeaderRedactor(SENSITIVE_HEADERS).hide(json.dumps({"text": said}).encode())
    assert count == 1
    header["value"] = HIDDEN
    assert json.loads(json.loads(hidden)["text"]) == [header, {"name": "a", "value": "b"}]


@pytest.mark.parametrize(
    "text",
    [
        "{ 'x-api-key': 'TOKEN', accept: '*/*' }",
        "{ authorization: 'Bearer TOKEN', accept: '*/*' }",
        "{ accept: '*/*', 'set-cookie': [ 'id=TOKEN; Path=/' ] }",
        "{\n  'proxy-authorization': \x1b[32m'Basic TOKEN'\x1b[39m,\n}",
        "curl -H 'x-api-key: TOKEN' --data '{}' https://shop.example/",
    ],
)
@pytest.mark.parametrize("is_in_json", [False, True])
def test_a_value_is_hidden_by_its_name_in_what_scripts_print(
    text: str, *, is_in_json: bool
) -> None:
    text = json.dumps({"type": "stdout", "text": text}) if is_in_json else text
    hiding = HeaderRedactor(SENSITIVE_HEADERS)
    hiding.collect(text.replace("TOKEN", TOKEN).encode())
    hidden, _ = hiding.hide(text.replace("TOKEN", TOKEN).encode())
    assert (TOKEN in hidden.decode(), TOKEN in hiding.found) == (False, True)
    ends = text.partition("TOKEN")[2].partition("'")[2]
    assert hidden.decode().endswith(ends)


@pytest.mark.parametrize(
    "text",
    ['{"name":"accept","value":"text/html"}', '{"cookies":[]}', '{"name":"cookie","value":""}'],
)
def test_other_values_stay(text: str) -> None:
    assert HeaderRedactor(SENSITIVE_HEADERS).hide(text.encode()) == (text.encode(), 0)


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("authorization", f"Bearer {TOKEN}", {TOKEN}),
        ("x-api-key", TOKEN, {TOKEN}),
        ("x-api-key", "short", set()),
        ("cookie", f"a={TOKEN}; b=short; c=long-enough", {TOKEN, "long-enough"}),
        ("set-cookie", f"a={TOKEN}; Path=/; HttpOnly", {TOKEN}),
        (
            "authorization",
            f"Basic {base64.b64encode(f'user:{TOKEN}'.encode()).decode()}",
            {base64.b64encode(f"user:{TOKEN}".encode()).decode(), TOKEN},
        ),
    ],
)
def test_what_is_long_enough_is_looked_for_elsewhere(
    name: str, value: str, found: set[str]
) -> None:
    headers = HeaderRedactor(SENSITIVE_HEADERS)
    headers.collect(json.dumps({"name": name, "value": value}).encode())
    assert set(headers.found) == found


def a_request(*headers: tuple[str, str]) -> dict[str, Any]:
    listed = [{"name": name, "value": value} for name, value in headers]
    return {"type": "resource-snapshot", "snapshot": {"request": {"headers": listed}}}


def test_a_value_that_a_server_echoes_is_hidden_in_its_answer(tmp_path: Path) -> None:
    network = lines(a_request(("authorization", f"Bearer {TOKEN}"), ("accept", "*/*")))
    archive = a_zip({"0-trace.network": network, "a.html": f"you sent {TOKEN}".encode()})
    left = read_members(hidden_bytes(tmp_path, archive, SECRET))
    assert left["a.html"] == f"you sent {HIDDEN}".encode()
    assert left["0-trace.network"] == lines(a_request(("authorization", HIDDEN), ("accept", "*/*")))


def test_a_har_file_stays_one(tmp_path: Path) -> None:
    entries = [a_request(("Cookie", f"a={TOKEN}"))["snapshot"] for _ in range(20_000)]
    har = json.dumps({"log": {"entries": entries, "comment": f"{SECRET} {TOKEN}"}}, indent=1)
    left = json.loads(hidden_bytes(tmp_path, har.encode(), SECRET, name="a.har"))
    assert left["log"]["comment"] == f"{HIDDEN} {HIDDEN}"
    assert {one["request"]["headers"][0]["value"] for one in left["log"]["entries"]} == {HIDDEN}


def test_a_value_that_is_found_late_is_hidden_in_what_was_read_before(tmp_path: Path) -> None:
    members = {
        "0-trace.trace": lines({"type": "console", "pageId": "page@1", "text": f"said {TOKEN}"}),
        "0-trace.stacks": lines({"files": [TOKEN]}),
        "1-trace.network": lines(a_request(("x-api-key", TOKEN))),
    }
    found = hidden(tmp_path, a_zip(members), SECRET)
    left = read_members(found.file.path.read_bytes())
    assert TOKEN.encode() not in b"".join(left.values())
    assert found.shows_secret


def test_further_headers_may_be_named(tmp_path: Path) -> None:
    request = a_request(("X-Session", TOKEN))
    found = hidden(
        tmp_path,
        a_zip({"0-trace.network": lines(request)}),
        SECRET,
        header_names=frozenset({"x-session"}),
    )
    (left,) = read_members(found.file.path.read_bytes()).values()
    assert left == lines(a_request(("X-Session", HIDDEN)))
