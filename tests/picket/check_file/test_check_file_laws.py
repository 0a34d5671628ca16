import json
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from contract.checks import CheckType
from picket.check_file.load import parse
from picket.errors import CommandError
from tests.picket.check_file.test_check_file import refusal

KEYS = st.sampled_from(
    [
        "type", "checkType", "name", "request", "url", "method", "headers", "assertions", "source",
        "comparison", "target", "property", "regex", "hostname", "port", "query", "nameServer",
        "heartbeat", "period", "periodUnit", "grace", "graceUnit", "pingToken", "variables", "key",
        "value", "secret", "basicAuth", "password", "maxResponseTime", "environmentVariables",
        "clientCertificates", "proxyUrl", "localSetupScript", "frequency", "unknown", "script",
    ]
)  # fmt: skip
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from([*CheckType, "EQUALS", "STATUS_CODE", "GET", "hours", "http://127.0.0.1/"])
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)
DOCUMENTS = st.fixed_dictionaries(
    {"type": st.sampled_from(CheckType)},
    optional={
        "request": VALUES,
        "heartbeat": VALUES,
        "variables": VALUES,
        "assertions": VALUES,
        "proxyUrl": VALUES,
        "clientCertificates": VALUES,
        "name": VALUES,
    },
)


@given(st.text())
def test_any_text_is_a_check_or_a_sentence(text: str) -> None:
    with suppress(CommandError):
        parse(text, "any.yaml")


def sentence(document: Any) -> str:
    """Why the document is no check; empty when it is one."""
    try:
        parse(json.dumps(document), "any.json")
    except CommandError as refused:
        return refused.message
    return ""


@given(DOCUMENTS | VALUES)
def test_any_document_is_a_check_or_a_sentence(document: Any) -> None:
    said = sentence(document)
    lines = said.splitlines()
    assert all(line.startswith("any.json") for line in lines)
    assert len(lines) == len(set(lines)) <= 21


@given(st.text(alphabet="abcdefgh0123456789", min_size=8), st.sampled_from(["password", "header"]))
def test_a_secret_of_the_wrong_shape_is_never_repeated(secret: str, where: str) -> None:
    secret = f"s3cret-{secret}"
    request = {
        "password": {"url": "http://a", "basicAuth": {"username": 1, "password": secret}},
        "header": {"url": "http://a", "headers": {"authorization": secret}},
    }[where]
    assert secret not in refusal(json.dumps({"type": "API", "request": request}))
