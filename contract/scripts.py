"""Rules for scripts, their files, their snippets and their Playwright configuration.

Each function returns what is wrong as the rest of a sentence that begins with the field, or None.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from contract.checks import Dependency
from contract.suggestions import suggest_name
from contract.targets import kind_of

MAX_SCRIPT_BYTES: Final = 512 * 1024
"""The largest script, file or snippet, in bytes of UTF-8."""
MAX_SCRIPTS_BYTES: Final = 1024 * 1024
"""The largest total size of the snippets that are sent with a job."""
MAX_DEPENDENCIES: Final = 200
MAX_SNAPSHOTS: Final = 100
MAX_PATH_LETTERS: Final = 1000
EDITOR_SCRIPT: Final = "script.js"
"""The name of a script that has no path."""
SNIPPET_FOLDER: Final = "snippets"
"""The folder of snippets beside the script; each is a file `<name>.js`."""

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_LIBRARIES: Final = "node_modules"
_MOST_NAME_BYTES: Final = 240
"""A name of this length plus `.js` is still a valid file name everywhere (at most 255 bytes)."""
_SHOWN_LETTERS: Final = 100
_PLAIN_PATH: Final = re.compile(
    r"([A-Z]:)?(?!.*(cu|sv|pl)_\w{20})[\w .,+~@()\[\]/\\-]+", re.IGNORECASE
)
"""Paths that errors may quote: no script text, no URL with a password, none of our keys."""
_LIKE_A_PATH: Final = re.compile(r"(?=.{1,200}$)[\w@.-]+(?:/[\w@.-]+)*\.[cm]?[jt]sx?", re.ASCII)
_NOT_IN_A_NAME: Final = re.compile(r"[/\\\x00-\x1f\x7f\"'`]")
_NOT_IN_A_PATH: Final = re.compile(r"[\\\x00-\x1f\x7f]")
_IMPORTED: Final = re.compile(r"""["'`](\.{1,2}/[^"'`\r\n]+)["'`]""")


def size_bytes(text: str) -> int:
    """Return the size of the text in UTF-8, as it is sent and stored."""
    return len(text.encode("utf-8", "surrogatepass"))


def is_like_a_path(script: str) -> bool:
    """Whether the text of a script is only a path."""
    return _LIKE_A_PATH.fullmatch(script.strip()) is not None


def script_problem(script: str) -> str | None:
    """A script must not be empty, a path, or too large."""
    if not script.strip():
        return "is empty"
    if is_like_a_path(script):
        return f"is {script.strip()}, the path of a file; the text of the script belongs here"
    size = size_bytes(script)
    if size > MAX_SCRIPT_BYTES:
        return f"has {size} bytes; use at most {MAX_SCRIPT_BYTES}"
    return None


def path_problem(path: str) -> str | None:
    """A file's path must stay inside the folder of the run."""
    if len(path) > MAX_PATH_LETTERS:
        return f"has {len(path)} characters; use at most {MAX_PATH_LETTERS}"
    if path.startswith("/") or _NOT_IN_A_PATH.search(path):
        return f"{_is(path)}; use a relative path with / between its parts, as in pages/login.js"
    parts = path.split("/")
    if any(part in {"", ".", ".."} for part in parts):
        fix = "it must lead down from the folder of the check, without . or .. or empty parts"
        return f"{_is(path)}; {fix}"
    if _LIBRARIES in parts:
        there = f"must not lead into {_LIBRARIES}, where the libraries of the runtime are"
        return f"{_is(path)}; it {there}"
    if any(size_bytes(part) > _MOST_NAME_BYTES for part in parts):
        return f"has a part of more than {_MOST_NAME_BYTES} bytes between two slashes"
    return None


def folder_problem(path: str) -> str | None:
    """A folder's path as a file's; `.` is the folder of the run itself."""
    return None if path == "." else path_problem(path)


def _is(path: str) -> str:
    if not path:
        return "is empty"
    if _PLAIN_PATH.fullmatch(path) is None:
        return f"is {kind_of(path)}"
    return f"is {path if len(path) <= _SHOWN_LETTERS else f'{path[:_SHOWN_LETTERS]}…'}"


def dependencies_problem(
    dependencies: Sequence[Dependency], *, script_path: str | None
) -> tuple[str, str] | None:
    """Return the path of the first file that conflicts or breaks a rule, and why."""
    if len(dependencies) > MAX_DEPENDENCIES:
        return "", f"has {len(dependencies)} files; use at most {MAX_DEPENDENCIES}"
    paths = [file.path for file in dependencies]
    if found := _paths_problem(paths, taken={script_path or EDITOR_SCRIPT}):
        return found
    for order, file in enumerate(dependencies):
        if (size := size_bytes(file.content)) > MAX_SCRIPT_BYTES:
            return f"[{order}].content", f"has {size} bytes; use at most {MAX_SCRIPT_BYTES}"
    return None


def snapshots_problem(
    paths: Sequence[str], *, script_path: str | None, dependencies: Iterable[str]
) -> tuple[str, str] | None:
    """Return the path of the first snapshot that conflicts or breaks a rule, and why."""
    if len(paths) > MAX_SNAPSHOTS:
        return "", f"has {len(paths)} files; use at most {MAX_SNAPSHOTS}"
    return _paths_problem(paths, taken={script_path or EDITOR_SCRIPT, *dependencies})


def _paths_problem(paths: Sequence[str], *, taken: set[str]) -> tuple[str, str] | None:
    folders = _folders(taken)
    for order, path in enumerate(paths):
        if problem := path_problem(path):
            return f"[{order}].path", problem
        if path in taken:
            return f"[{order}].path", f"is {path}, which another file of the check has"
        if path in folders or not taken.isdisjoint(_folders({path})):
            return f"[{order}].path", f"is {path}, but one of its parts is a file already"
        taken.add(path)
        folders |= _folders({path})
    return None


def _folders(paths: Iterable[str]) -> set[str]:
    """Return all parent folders of these files."""
    return {path[:end] for path in paths for end, letter in enumerate(path) if letter == "/"}


def snippet_name_problem(name: str) -> str | None:
    """A snippet's name must be a file name, without `.js`."""
    if not name.strip() or name.startswith(".") or _NOT_IN_A_NAME.search(name):
        return "must be a file name: no slash, backslash or quote, and no dot in front"
    if name.endswith(".js"):
        return "must not end in .js, which is added where scripts import it"
    if (size := size_bytes(name)) > _MOST_NAME_BYTES:
        return f"has {size} bytes; use at most {_MOST_NAME_BYTES}"
    return None


def sha256_problem(text: str) -> str | None:
    """A content address must be a SHA-256 in hexadecimal."""
    if _SHA256.fullmatch(text) is None:
        return "must be a SHA-256 in 64 lower-case hexadecimal digits"
    return None


def snippet_path(name: str) -> str:
    """Return the path of a snippet's file, relative to the script's folder."""
    return f"{SNIPPET_FOLDER}/{name}.js"


def snippets_of_scripts(texts: Iterable[str]) -> frozenset[str]:
    """Return the names of snippets that scripts import by a quoted path."""
    paths = (path for text in texts for path in _IMPORTED.findall(text))
    return frozenset(
        _name(path) for path in paths if path.rpartition("/")[0].endswith(f"/{SNIPPET_FOLDER}")
    )


def snippets_of_snippet(text: str) -> frozenset[str]:
    """Return the names of snippets that a snippet imports from its own folder, or as scripts do."""
    return frozenset(_name(path) for path in _IMPORTED.findall(text))


def _name(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".js")


Wrong = tuple[str, str]
"""The path of the wrong field in the configuration, and the rest of a sentence about it."""

MAX_TIMEOUT_MS: Final = 240_000
_MOST_DEPTH: Final = 8
_LARGEST_NUMBER: Final = 2**53


def _is_time(value: object) -> str | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and isinstance(value, int | float) and 0 <= value <= MAX_TIMEOUT_MS:
        return None
    return f"must be a number of milliseconds from 0 to {MAX_TIMEOUT_MS}"


def _is_flag(value: object) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _is_text(value: object) -> str | None:
    return None if isinstance(value, str) else "must be a string"


def _is_number(value: object) -> str | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return None if is_number else "must be a number"


def _is_object(value: object) -> str | None:
    return None if isinstance(value, Mapping) else "must be an object"


def _is_object_or_null(value: object) -> str | None:
    return None if value is None or isinstance(value, Mapping) else "must be an object or null"


def _is_texts(value: object) -> str | None:
    is_texts = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
    return None if is_texts else "must be an array of strings"


def _is_headers(value: object) -> str | None:
    is_texts = isinstance(value, Mapping) and all(isinstance(one, str) for one in value.values())
    return None if is_texts else "must be an object of strings"


Judge = Callable[[object], str | None]

_EXPECT: Final[dict[str, Judge]] = {
    "timeout": _is_time,
    "toHaveScreenshot": _is_object,
    "toMatchSnapshot": _is_object,
}
_USE: Final[dict[str, Judge]] = {
    "actionTimeout": _is_time,
    "baseURL": _is_text,
    "bypassCSP": _is_flag,
    "colorScheme": _is_text,
    "connectOptions": _is_object,
    "contextOptions": _is_object,
    "deviceScaleFactor": _is_number,
    "extraHTTPHeaders": _is_headers,
    "geolocation": _is_object,
    "hasTouch": _is_flag,
    "httpCredentials": _is_object,
    "ignoreHTTPSErrors": _is_flag,
    "isMobile": _is_flag,
    "javaScriptEnabled": _is_flag,
    "locale": _is_text,
    "navigationTimeout": _is_time,
    "offline": _is_flag,
    "permissions": _is_texts,
    "proxy": _is_object,
    "testIdAttribute": _is_text,
    "timezoneId": _is_text,
    "viewport": _is_object_or_null,
}
_PARTS: Final[dict[str, Mapping[str, Judge]]] = {"use": _USE, "expect": _EXPECT}
_WHOLE: Final[dict[str, Judge]] = {"timeout": _is_time, "use": _is_object, "expect": _is_object}


def config_problem(config: Mapping[str, object]) -> Wrong | None:
    """Return the first field that a check may not set, or not to its value. None: all are valid."""
    return next(_problems(config), None)


def _problems(config: Mapping[str, object]) -> Iterator[Wrong]:
    yield from _of_fields(config, _WHOLE, "")
    for part, known in _PARTS.items():
        inside = config.get(part)
        if isinstance(inside, Mapping):
            yield from _of_fields(inside, known, f"{part}.")
            yield from _of_values(inside, f"{part}.")


def _of_fields(
    fields: Mapping[str, object], known: Mapping[str, Judge], path: str
) -> Iterator[Wrong]:
    for name, value in fields.items():
        judge = known.get(name)
        problem = judge(value) if judge else _unknown(name, known)
        if problem:
            yield f"{path}{name}", problem


def _unknown(name: str, known: Mapping[str, Judge]) -> str:
    meant = suggest_name(name, known)
    fix = f"did you mean {meant}?" if meant else f"use {', '.join(known)}"
    return f"cannot be set here; {fix}"


def _of_values(fields: Mapping[str, object], path: str) -> Iterator[Wrong]:
    for name, value in fields.items():
        if problem := _unwritable(value, depth=0):
            yield f"{path}{name}", problem


def _unwritable(value: object, *, depth: int) -> str | None:
    """Return why a value cannot be sent as JSON, or should not be."""
    if depth > _MOST_DEPTH:
        return f"is nested deeper than {_MOST_DEPTH} levels"
    if isinstance(value, str):
        return _unwritable_text(value)
    if isinstance(value, int | float) and not abs(value) <= _LARGEST_NUMBER:
        return "holds a number that is too large" if math.isfinite(value) else "holds no number"
    inside: list[object] = []
    if isinstance(value, Mapping):
        inside = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple):
        inside = [*value]
    found = (_unwritable(one, depth=depth + 1) for one in inside)
    return next((problem for problem in found if problem), None)


def _unwritable_text(text: str) -> str | None:
    try:
        plain = b"\0" not in text.encode()
    except UnicodeEncodeError:
        plain = False
    return None if plain else "contains a NUL or half a surrogate pair"
