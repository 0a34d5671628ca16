"""Words of the formats that runs bring back: were they hidden, nothing could read these files."""

from typing import Final

_JSON: Final = "true false null none http https http:// https:// localhost"
_TRACE: Final = (
    "version type origin library libraryVersion options platform wallTime monotonicTime sdkLanguage"
    " testIdAttributeName contextId context-options title browserName channel playwrightVersion"
    " deviceScaleFactor viewport width height before after input event console stdout stderr"
    " screencast-frame frame-snapshot resource-snapshot error object action callId stepId parentId"
    " startTime endTime apiName class method params stack beforeSnapshot afterSnapshot"
    " inputSnapshot snapshot snapshotName pageId frameId frameUrl doctype html resourceOverrides"
    " timestamp isMainFrame sha1 point message messageType time result attachments annotations"
    " name contentType path file files base64 text args preview value location url lineNumber"
    " columnNumber line column function isError body data frames stacks frameSent frameReceived"
)
_HAR: Final = (
    "request response headers cookies queryString postData mimeType headersSize bodySize status"
    " statusText httpVersion content size encoding compression redirectURL cache timings connect"
    " send wait receive pageref startedDateTime serverIPAddress securityDetails creator browser"
    " comment entries pages _frameref _monotonicTime _serverPort _securityDetails _resourceType"
)
_REPORT: Final = (
    "config suites specs tests results errors projects projectName retry duration passed failed"
    " skipped expected unexpected flaky timedOut interrupted"
)
_PAGE: Final = (
    "HEAD BODY META LINK STYLE SCRIPT SPAN FORM INPUT BUTTON LABEL TABLE href"
    " __playwright_value_ __playwright_checked_ __playwright_selected_ __playwright_src__"
)

FORMAT_WORDS: Final = frozenset(
    word.lower() for words in (_JSON, _TRACE, _HAR, _REPORT, _PAGE) for word in words.split()
)
"""In small letters; keys of JSON, types of events, tags and attributes of snapshots."""
