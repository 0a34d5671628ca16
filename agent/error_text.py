"""An exception as text that holds nothing but what stands in our own source code.

A message is kept word by word, and only words that are constants of the code that raised it, or
that the interpreter itself uses. URLs, headers, response bodies, configuration and keys come from
elsewhere, so they cannot pass; there is no list of bad patterns to be incomplete.
"""

import builtins
import os
import re
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType
from typing import Final

GAP: Final = "…"
"""Stands for whatever was left out."""
_LIMIT: Final = 8_000
_DEPTH: Final = 6
_FRAMES: Final = 40
_RAISERS: Final = 3
"""The innermost frames, whose constants a message may be made of."""
_ROOT: Final = str(Path(__file__).resolve().parent.parent)
_STDLIB: Final = str(Path(os.__file__).resolve().parent)
_CHUNK: Final = re.compile(r"[^\s'\"(){}\[\]<>,;=`]+")
_WORD: Final = re.compile(r"[^\W\d][\w.\-]*[\w]|[^\W\d]")
_PLACEHOLDER: Final = re.compile(r"%(?:\(\w+\))?[-+ #0]*[\d.*]*[a-zA-Z]|\{[^{}]*\}")
_EVENT: Final = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z0-9_]+){1,2}")
_INTERPRETER_SAYS: Final = frozenset(
    """a already an and argument arguments assigned at attribute attributes be before by bytes can
    cannot character characters closed codec concatenate connection could decode deque dict during
    empty encode event exceeded expected Expected failed for found from future generator get got
    has have identifier in index input instance instances integer invalid is iterable iterate
    iteration key keyword length list loop lost many maximum missing must name no None not object
    of on only open operand operands operation or out outside positional pop position range read
    recursion required reset running scope sequence set size str string sub-exception
    sub-exceptions subscriptable supported takes task TaskGroup than the timed timeout to too tuple
    type types unexpected unhandled Unknown unpack unsupported using value values variable was were
    where which while with zero division associated access local referenced refused write
    Error Exception Fatal Task Unclosed Unhandled callback client connector exception handling
    never request retrieved session transport
    """.split()  # noqa: SIM905 - a page of words reads better than a page of quotes
)
_BUILTIN_NAMES: Final = frozenset(dir(builtins)) | {"NoneType"}
_IDENTIFIER_ERRORS: Final = (TypeError, AttributeError, NameError, ImportError)
"""The interpreter names parts of the code in these."""


def message_of(error: BaseException) -> str:
    """Type and cleaned text of an exception, on one line."""
    text = _system_text(error) if isinstance(error, OSError) else _own_text(error)
    name = type(error).__qualname__
    return f"{name}: {text}" if text else name


def stack_of(error: BaseException) -> str:
    """Where the exception and those behind it were raised, innermost frame last."""
    return "\n".join(_chain(error, _DEPTH, seen=set()))[:_LIMIT]


def event_of(text: str) -> str:
    """The name of a log event; of any other text, the words that any log line may hold."""
    if _EVENT.fullmatch(text):
        return text
    return " ".join(_without_strangers(text, _INTERPRETER_SAYS))


def _chain(error: BaseException, depth: int, *, seen: set[int]) -> Iterator[str]:
    if depth == 0 or id(error) in seen:
        return
    seen.add(id(error))
    behind = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if behind is not None and id(behind) not in seen:
        yield from _chain(behind, depth - 1, seen=seen)
        yield "which led to" if error.__cause__ else "during which came"
    yield from _frames(error)
    yield message_of(error)
    if isinstance(error, BaseExceptionGroup):
        for member in error.exceptions[:_DEPTH]:
            yield "one of the group:"
            yield from _chain(member, depth - 1, seen=seen)


def _frames(error: BaseException) -> Iterator[str]:
    for frame, line in list(traceback.walk_tb(error.__traceback__))[-_FRAMES:]:
        code = frame.f_code
        yield f"  {_path(code.co_filename)}:{line} in {code.co_qualname}"


def _path(file_name: str) -> str:
    """A source file relative to what it belongs to, so that no directory of the host shows."""
    _, found, inside = file_name.rpartition("site-packages/")
    if found:
        return inside
    for root in (_STDLIB, _ROOT):
        if file_name.startswith(f"{root}/"):
            return file_name[len(root) + 1 :]
    return file_name.rpartition("/")[2]


def _system_text(error: OSError) -> str:
    """What the operating system calls the error; host and file names are left out."""
    if error.errno is None:
        return _own_text(error)
    return f"[Errno {error.errno}] {os.strerror(error.errno)}"


def _own_text(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return f"{len(error.exceptions)} exceptions"
    return " ".join(_without_strangers(_text(error), _vocabulary(error)))


def _text(error: BaseException) -> str:
    try:
        return str(error)[:_LIMIT]
    except Exception:  # noqa: BLE001 - a broken __str__ must not stop the report of its error
        return ""


def _without_strangers(text: str, known: frozenset[str]) -> Iterator[str]:
    """The known words in their order, one gap for each run of others."""
    gap = False
    for chunk in _CHUNK.findall(text):
        word = chunk.strip(".:!?-")
        if word in known and _WORD.fullmatch(word):
            gap = False
            yield chunk
        elif word and not gap:
            gap = True
            yield GAP


def _vocabulary(error: BaseException) -> frozenset[str]:
    """The words that a message of this exception may hold."""
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)][-_RAISERS:]
    words = {word for code in frames for word in _words_of(_texts(code.co_consts))}
    if isinstance(error, _IDENTIFIER_ERRORS):
        for code in frames:
            words.update(code.co_names, code.co_varnames, {code.co_name})
    return frozenset(words) | _INTERPRETER_SAYS | _BUILTIN_NAMES


def _texts(constants: Iterable[object]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple | frozenset):
            yield from _texts(constant)
        elif isinstance(constant, CodeType):
            # A comprehension is a function of its own; its constants stand in the same line.
            yield from _texts(constant.co_consts)


def _words_of(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for chunk in _CHUNK.findall(_PLACEHOLDER.sub(" ", text)):
            yield chunk.strip(".:!?-")
