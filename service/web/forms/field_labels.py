"""Words for fields and values, where those of the API do not read well."""

import re
from collections.abc import Mapping
from typing import Any, Final

from service.vault.texts import HIDDEN
from service.web.alerts.alert_words import KINDS

_LABELS: Final[Mapping[str, str]] = {
    "acceptedStatusCodes": "Accepted status codes",
    "accountKey": "Account key",
    "activated": "Active",
    "alertChannelId": "Channel",
    "alertChannelSubscriptions": "Alert channels",
    "alertSettings": "Alert settings",
    "amount": "How many",
    "grace": "Grace",
    "apiCheckDefaults": "Default values of API checks",
    "authScheme": "Authentication scheme",
    "autoSubscribe": "New checks subscribe by themselves",
    "baseBackoffSeconds": "First wait",
    "period": "Expects a ping every",
    "type": "Wait before each retry",
    "basicAuth": "User and password",
    "bodyType": "Body type",
    "browserCheckDefaults": "Default values of browser checks",
    "ca": "Additional roots",
    "cert": "Certificate",
    "checkId": "Check",
    "codeBundlePath": "Code bundle",
    "connectTo": "Connect to address",
    "degradedPacketLossThreshold": "Degraded from a packet loss of",
    "degradedResponseTime": "Degraded after",
    "dependencies": "Files",
    "doubleCheck": "Retry once",
    "enabled": "Only when a share of the locations fails",
    "endsAt": "Ends",
    "environmentVariables": "Variables",
    "escalationType": "Alert after",
    "failedRunThreshold": "Failed runs",
    "frequency": "Runs every",
    "frequencyOffset": "Offset of its runs",
    "groupId": "Group",
    "groupOrder": "Position in the group",
    "httpVersion": "HTTP version",
    "id": "Service",
    "interval": "Every",
    "ipFamily": "IP version",
    "isPrivate": "Who sees it",
    "localSetupScript": "Setup script",
    "localTearDownScript": "Teardown script",
    "locations": "Regions",
    "maxDurationSeconds": "Give up after",
    "maxPacketLossThreshold": "Fails from a packet loss of",
    "maxResponseTime": "Fails after",
    "minutesFailingThreshold": "Minutes failing",
    "onlyOn": "Retry only after",
    "parallelRunFailureThreshold": "Failing locations",
    "percentage": "Share",
    "pingCount": "Pings",
    "privateLocations": "Locations",
    "property": "Part",
    "redirectTo": "Link of the logo",
    "repeatEndsAt": "Repeats until",
    "repeatInterval": "Interval",
    "repeatUnit": "Repeats",
    "retryStrategy": "Retries",
    "rrule": "Recurrence rule",
    "runBasedEscalation": "Runs",
    "timeBasedEscalation": "Minutes",
    "runParallel": "Run at all locations at once",
    "runtimeId": "Runtime",
    "sameRegion": "Retry at the same location",
    "sendDegraded": "Degraded checks",
    "sendFailure": "Failures",
    "sendRecovery": "Recoveries",
    "serviceId": "Service",
    "setupSnippetId": "Setup snippet",
    "shouldFail": "Expect failure",
    "showOnStatusPages": "Announce it on status pages",
    "skipSSL": "Accept any certificate",
    "smsNumber": "Number",
    "sslCheckDomain": "Certificate of host",
    "sslExpiry": "Certificates that expire soon",
    "sslExpiryThreshold": "Days before the expiry",
    "startsAt": "Starts",
    "tearDownSnippetId": "Teardown snippet",
    "triggerIncident": "Open an incident",
    "url": "URL",
    "useGlobalAlertSettings": "Use the account's alert settings",
    "webhookSecret": "Signing secret",
    "webhookType": "Format",
}
_SHORTER_HELP: Final[Mapping[str, str]] = {
    "alertChannelId": "Where alerts are sent.",
    "amount": "Sent for as long as a check keeps failing or stays degraded.",
    "doubleCheck": "Without retries of its own, a failed run is tried again at once, at another"
    " location if the check has one.",
    "grace": "How much later than that a ping may come.",
    "period": "The time between two pings.",
    "retryStrategy": "How a failed run is tried again before anybody is alerted.",
    "basicAuth": "For a bearer token, add the header `Authorization` with the value"
    " `Bearer {{TOKEN}}` instead, and a secret variable called `TOKEN`.",
    "codeBundlePath": "The project, packed into one file: \N{LEFT DOUBLE QUOTATION MARK}Upload a"
    " bundle\N{RIGHT DOUBLE QUOTATION MARK} sends one. Each is named by the first letters of its"
    " SHA-256.",
    "engine": "What runs the tests.",
    "runParallel": "Run at all locations each time, instead of at one after the other.",
    "runtimeId": "The versions of Node.js and Playwright for scripts.",
    "frequencyOffset": "Shifts its runs against those of other checks, for a frequency of a minute"
    " or more. Empty: the service spreads them.",
    "defaultTheme": "Automatic: as the visitor's device has it.",
    "customDomain": "A host name of its own, at which the page answers once DNS points there.",
    "isPrivate": "A page that only those see who have its key gets one when it is saved.",
    "repeatInterval": "2 means every second day, week or month. Empty: 1.",
    "repeatUnit": "Monthly, a window of the 31st is on the last day of shorter months.",
    "showOnStatusPages": "Visitors read its name and its times, from a week before. A page shows it"
    " if a check that it applies to opens incidents of a service of the page.",
}
"""Instead of what the API's documentation says at length."""
_ACRONYMS: Final = frozenset({"API", "DNS", "HTTP", "ID", "IP", "JSON", "SMS", "SSL", "TLS", "URL"})
_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")
_UNITS: Final[Mapping[str, str]] = {
    "baseBackoffSeconds": "s",
    "degradedPacketLossThreshold": "%",
    "degradedResponseTime": "ms",
    "maxDurationSeconds": "s",
    "maxPacketLossThreshold": "%",
    "maxResponseTime": "ms",
}
_MINUTES_PER_HOUR: Final = 60
_NO_LIMIT: Final = 100_000
_IN_MINUTES: Final = frozenset({"frequency", "interval", "minutesFailingThreshold"})
_VALUES: Final[Mapping[str, str]] = {
    "AUTO": "Automatic",
    "BASIC": "Basic",
    "DARK": "Dark",
    "LIGHT": "Light",
    "CONTAINS": "Contains",
    "CRITICAL": "Critical",
    "DAY": "Days",
    "DIGEST": "Digest",
    "FALLBACK": "Left to the checks",
    "JSON_BODY": "JSON body",
    "SINGLE_RETRY": "One retry, after the first wait",
    "EQUALS": "Equals",
    "EXPONENTIAL": "Its power: w, w\N{SUPERSCRIPT TWO}, w\N{SUPERSCRIPT THREE}",
    "FIXED": "Always the same",
    "FORM": "Form",
    "GRAPHQL": "GraphQL",
    "GREATER_THAN": "Is greater than",
    "HEADERS": "Headers",
    "HTTP_1_1": "HTTP/1.1",
    "HTTP_2": "HTTP/2",
    "HTTP_3": "HTTP/3",
    "LATENCY": "Latency",
    "LESS_THAN": "Is less than",
    "LINEAR": "Longer each time: once, twice, three times",
    "MAJOR": "Major",
    "MEDIUM": "Medium",
    "MINOR": "Minor",
    "MONTH": "Months",
    "NONE": "None",
    "NOT_CONTAINS": "Does not contain",
    "NOT_EMPTY": "Is not empty",
    "NOT_EQUALS": "Does not equal",
    "NOT_HAS_KEY": "Has no key",
    "NOT_HAS_VALUE": "Has no value",
    "NOT_NULL": "Is not null",
    "RAW": "Raw",
    "RUN_BASED": "Failed runs",
    "TIME_BASED": "Minutes failing",
    "WEEK": "Weeks",
    "bun": "Bun",
    "chromium": "Chromium",
    "firefox": "Firefox",
    "node": "Node.js",
    "webkit": "WebKit",
}
_WORDS: Final[Mapping[str, str]] = {**_VALUES, **KINDS}
_WORDS_OF: Final[Mapping[tuple[str, str], str]] = {
    ("bodyType", "NONE"): "No body",
    ("bodyType", "RAW"): "Plain text",
    ("retryStrategy", "NONE"): "No retries",
}
"""Values that read differently in one field."""
_VALUE_IN_TEXT: Final = re.compile(r"`?\b([A-Z][A-Z0-9_]{2,})\b`?")
_NULL: Final = re.compile(r"\bNull( or empty)?(?=[:;])")
_SAYS_NOTHING: Final = re.compile(r"Null( or empty)?: (none|there is no|it is of)")
_NAMES: Final = re.compile(r"`([a-z]+(?:[A-Z][a-z]*)*)`")
_SENTENCES: Final = re.compile(r"\S.*?(?:[.?](?=\s|$)|$)", re.DOTALL)
_FOR_PROGRAMS: Final = (" PUT", "in quotes", "Slugs", "Beyond the specification")


def label_of(name: str) -> str:
    """The name of a field in words: `maxRetries` is `Max retries`."""
    if name in _LABELS:
        return _LABELS[name]
    parts = [part if part in _ACRONYMS else part.lower() for part in _PARTS.findall(name)]
    text = " ".join(part.upper() if part.upper() in _ACRONYMS else part for part in parts)
    return text[:1].upper() + text[1:]


def shorter_help(name: str) -> str:
    """What a form says of a field. Empty: it says what the API's documentation says."""
    return _SHORTER_HELP.get(name, "")


def unit_of(name: str) -> str:
    """What a number counts; empty where its label says so."""
    return _UNITS.get(name, "")


def option_label(name: str, value: Any) -> str:
    """A value of a field in words: `STATUS_CODE` is `Status code`."""
    if name in _IN_MINUTES and isinstance(value, int):
        return _minutes(value)
    if value == _NO_LIMIT:
        return "No limit"
    if isinstance(value, int | float):
        return f"{value} %" if name == "percentage" else str(value)
    text = str(value)
    if found := _WORDS_OF.get((name, text)) or _WORDS.get(text):
        return found
    if "_" in text and text.isupper():
        return _sentence(text.split("_"))
    return text


def _sentence(parts: list[str]) -> str:
    """Words of a constant; abbreviations stay as they are."""
    words = [part if part in _ACRONYMS else part.lower() for part in parts]
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def _minutes(value: int) -> str:
    if value >= _MINUTES_PER_HOUR and value % _MINUTES_PER_HOUR == 0:
        return f"{value // _MINUTES_PER_HOUR} h"
    return f"{value} min"


def help_of(text: str, *, nothing: str, is_hidden: bool) -> str:
    """A description as a form says it.

    `nothing` is what null is called here. Other fields are named by their labels. What only
    programs do is left out, and how to keep a stored secret unless there is one (`is_hidden`).
    """
    sentences = _SENTENCES.findall(text)
    left_out = _FOR_PROGRAMS if is_hidden else (*_FOR_PROGRAMS, HIDDEN)
    kept = [one for one in sentences if not any(word in one for word in left_out)]
    kept = [one for one in kept if not _SAYS_NOTHING.match(one)]
    plain = _NULL.sub(nothing, " ".join(kept)).replace("null or empty", "none")
    named = _NAMES.sub(lambda found: _quote(label_of(found[1])), plain)
    return _VALUE_IN_TEXT.sub(
        lambda found: _quote(_VALUES[found[1]]) if found[1] in _VALUES else found[0], named
    )


def _quote(label: str) -> str:
    return f"\N{LEFT DOUBLE QUOTATION MARK}{label}\N{RIGHT DOUBLE QUOTATION MARK}"
