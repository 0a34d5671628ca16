"""Each form has a case that nothing else finds: a form that is lost or has none is seen."""

import base64
import json
import string
from itertools import chain

import pytest

from redaction.compiled import compile_forms, find_overlapping
from redaction.forms import text_forms, whole_forms
from redaction.policy import select_usable
from redaction.replacer import SecretPattern
from tests.builders.secret_forms import CASES, REGISTRIES, Case

FORMS = [
    pytest.param(registry, form.name, id=f"{registry}: {form.name}")
    for registry, (module, attribute) in REGISTRIES.items()
    for form in getattr(module, attribute)
]
SIGNS = (*string.punctuation, " ", "\n", "ö", "\N{GRINNING FACE}")
WIDTHS = (("u", 4), ("x", 2), ("U", 8))


def is_hidden(case: Case) -> bool:
    hidden, count = SecretPattern(select_usable([case.secret])).hide(b"<" + case.text + b">")
    return count > 0 and case.text not in hidden


@pytest.mark.parametrize(("registry", "form"), FORMS)
def test_each_form_is_hidden_and_by_nothing_but_itself(
    registry: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[registry][form]
    assert is_hidden(case)
    module, attribute = REGISTRIES[registry]
    others = tuple(other for other in getattr(module, attribute) if other.name != form)
    monkeypatch.setattr(module, attribute, others)
    assert not is_hidden(case)


def test_each_case_belongs_to_a_form() -> None:
    known = {tuple(param.values) for param in FORMS}
    cases = chain.from_iterable(
        ((registry, form) for form in CASES[registry]) for registry in CASES
    )
    assert set(cases) == known


def behind(run: bytes, begin: str) -> bytes:
    """A secret that begins so, in ways that may begin with a backslash, behind such a run each."""
    points = [*map(ord, begin)]
    limit_backslashes = (
        begin,
        json.dumps(begin)[1:-1],
        *("".join(f"{sign}#{point};" for point in points) for sign in ("u0026", "x26")),
        *("\\".join(f"{letter}{point:0{width}x}" for point in points) for letter, width in WIDTHS),
        *"nr",
    )
    return b" ".join(run + f"{one}secret99".encode() for one in limit_backslashes)


@pytest.mark.parametrize("run", [b"\\", b"%5c", b"%255C", b"%5c\\"])
@pytest.mark.parametrize("before", ["", "\\"])
def test_a_secret_is_not_found_at_each_backslash_before_it(before: str, run: bytes) -> None:
    for sign in SIGNS:
        [expression] = compile_forms(text_forms(f"{before}{sign}secret99"))
        texts = (behind(run * length, before + sign) for length in (20, 40))
        few, many = (len(list(find_overlapping(expression, text))) for text in texts)
        assert 0 < few == many


@pytest.mark.parametrize("sign", [">", "?"])
def test_base64_that_begins_with_a_sign_is_not_found_at_each_backslash_before_it(sign: str) -> None:
    [expression] = compile_forms(whole_forms(f"{sign}secret99"))
    encoded = base64.b64encode(f"ab{sign}secret99\n".encode())[3:].replace(b"+", b"u002b")
    few, many = (
        len(list(find_overlapping(expression, b"\\" * length + encoded))) for length in (20, 40)
    )
    assert 0 < few == many


@pytest.mark.parametrize("before", [63, 64, 65, 300])
def test_no_half_of_a_long_run_of_backslashes_is_left_before_a_secret(before: int) -> None:
    text = b"a" + b"\\" * before + b"!secret99"
    assert SecretPattern(["!secret99"]).hide(text) == (b"a*********", 1)
