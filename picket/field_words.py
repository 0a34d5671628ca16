"""The words that a check file may use at its top, by type. Pure.

They are not those of the contract: a file names scripts by path, and a service brings what files
have no word for.
"""

from typing import Final

import msgspec

from contract.checks import SPEC_TYPES, CheckType
from picket.field_errors import Words
from picket.public_form import CONTROL_PLANE_FIELDS

_ALWAYS: Final = frozenset({"type", "name", "variables"})
_OF_HTTP: Final = frozenset({"clientCertificates", "proxyUrl"})
_OF_SCRIPTS: Final = frozenset({"clientCertificates"})
_OF_ONE_SCRIPT: Final = _OF_SCRIPTS | {"scriptFile", "dependencyFiles"}
_FURTHER: Final[dict[CheckType, frozenset[str]]] = {
    CheckType.URL: _OF_HTTP,
    CheckType.API: _OF_HTTP | {"setupScriptFile", "teardownScriptFile"},
    CheckType.BROWSER: _OF_ONE_SCRIPT,
    CheckType.MULTI_STEP: _OF_ONE_SCRIPT,
    CheckType.PLAYWRIGHT: _OF_SCRIPTS | {"suiteFolder"},
    CheckType.HEARTBEAT: frozenset({"heartbeat"}),
}
"""What files say beside the fields of a spec; of the other types nothing."""
_BETWEEN_US: Final = frozenset(
    {
        "groupSetupScript",
        "groupTeardownScript",
        "setupScriptPath",
        "teardownScriptPath",
        "snippets",
        "bundleSha256",
        "refreshCache",
    }
)
"""What a service, or `picket run` itself, puts into a spec."""


def words_of(kind: CheckType) -> Words:
    """The words of a type."""
    of_spec = {field.encode_name for field in msgspec.structs.fields(SPEC_TYPES[kind])}
    further = _ALWAYS | _FURTHER.get(kind, frozenset())
    return Words(frozenset((of_spec - _BETWEEN_US) | further), CONTROL_PLANE_FIELDS)
