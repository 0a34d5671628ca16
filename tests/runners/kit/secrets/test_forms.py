"""Each form has a case that nothing else finds: a form that is lost or has none is seen."""

from itertools import chain

import pytest

from runners.kit.secrets.pattern import SecretPattern
from tests.builders.secret_forms import CASES, REGISTRIES, Case

FORMS = [
    pytest.param(registry, form.name, id=f"{registry}: {form.name}")
    for registry, (module, attribute) in REGISTRIES.items()
    for form in getattr(module, attribute)
]


def is_hidden(case: Case) -> bool:
    hidden, count = SecretPattern([case.secret]).hide(b"<" + case.text + b">")
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
