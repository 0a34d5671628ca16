"""Which lines of a trace spell a text together: keys, output, messages, fields of a letter."""

import re
from typing import Final

_TYPE: Final = re.compile(rb'"type":"([\w-]+)"')
_TYPING: Final = re.compile(
    rb'"method":"(?:press|type|keyboardPress|keyboardDown|keyboardInsertText|keyboardType)"'
    rb'|"method":"pw:api"[^\n]*"title":"(?:Press|Insert|Type|Key down|keyboard\.|locator\.press)'
    rb'|"apiName":"(?:keyboard\.|\w+\.press)'
)
_RELEASING: Final = re.compile(rb'"method":"keyboardUp"|"title":"Key up|"title":"keyboard\.up')
_FRAME: Final = re.compile(rb'"method":"(frameSent|frameReceived)"')
_FILLING: Final = re.compile(rb'"method":"fill"|"title":"Fill |"apiName":"\w+\.fill"')
_OUTPUTS: Final = frozenset({b"stdout", b"stderr", b"console", b"send", b"receive"})
TYPED: Final = (b"typed", b"released", b"filled")
"""By calls; the others by lines."""
BOXES: Final = b"boxes"
OF_BOXES: Final = (BOXES, b"filled")
"""Fields of single letters."""


def speller(head: bytes) -> bytes | None:
    """What spells with this line. None: nothing."""
    kind = _TYPE.search(head)
    if kind is None:
        return None
    if kind[1] == b"before":
        ways = ((_RELEASING, b"released"), (_TYPING, b"typed"), (_FILLING, b"filled"))
        return next((name for way, name in ways if way.search(head)), None)
    if kind[1] == b"event":
        frame = _FRAME.search(head)
        return None if frame is None else frame[1]
    if kind[1] == b"frame-snapshot":
        return BOXES
    return kind[1] if kind[1] in _OUTPUTS else None
