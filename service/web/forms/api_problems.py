"""The API's message about a form, divided among the fields that it names."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from service.checks.model import NO_LOCATION
from service.web.api_calls import ApiAnswer
from service.web.forms.field_labels import label_of

_LAST_NAME: Final = re.compile(r"([A-Za-z0-9_]+)(?:\[\d+\])?$")


def divide(answer: ApiAnswer) -> Mapping[str, str]:
    """Sentences by the path of their field; what is about no field has an empty path."""
    message, keys = answer.message, answer.wrong_fields
    if message.rstrip(".") == NO_LOCATION:
        return {keys[-1]: "Choose at least one location."}
    starts = sorted((at, key) for key in keys if (at := _find(message, key)) >= 0)
    if not starts:
        # A rule that names its field otherwise, as in "The group has …".
        return {keys[0] if len(keys) == 1 else "": message}
    problems = {"": head} if (head := message[: starts[0][0]].strip()) else {}
    ends = [at for at, _ in starts[1:]] + [len(message)]
    for (at, key), end in zip(starts, ends, strict=True):
        problems[key] = _begin_with_label(message[at:end].strip(), key)
    return problems


def _find(message: str, key: str) -> int:
    """Where the sentence about a field begins. -1: there is none."""
    found = re.search(rf'(?:^|(?<=[.?] ))"{re.escape(key)}" ', message)
    return found.start() if found else -1


def _begin_with_label(sentence: str, key: str) -> str:
    """`"request.url" must …` is, beside that field, `URL must …`."""
    name = _LAST_NAME.search(key)
    return sentence.replace(f'"{key}"', label_of(name[1]) if name else key, 1)


def summarize(problems: Mapping[str, str], loose: Sequence[str]) -> str:
    """What stands at the top of a form that was refused."""
    if loose:
        return " ".join(loose)
    count = sum(bool(path) for path in problems)
    if count == 1:
        return "Nothing was saved: one field is wrong."
    return f"Nothing was saved: {count} fields are wrong."
