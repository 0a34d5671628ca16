"""The runtimes of scripts: versions of Node, Playwright and libraries.

Their lock files are in `runners/harness/runtimes`; a test proves that both agree.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from types import MappingProxyType
from typing import Final

_LIKE_AN_ID: Final = re.compile(r"[\w.-]{1,30}", re.ASCII)


class RuntimeStage(StrEnum):
    """The stage of a runtime's life cycle."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    CURRENT = "CURRENT"
    STABLE = "STABLE"
    DEPRECATED = "DEPRECATED"
    REMOVED = "REMOVED"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeFacts:
    """Fixed versions that scripts run on; the browser is the Chromium of each agent's system."""

    id: str
    stage: RuntimeStage
    node: str
    """The version of Node.js."""
    playwright: str
    """The version of Playwright Test."""
    ends_on: date
    """The last day on which its Node.js is supported."""
    libraries: Mapping[str, str]
    """Versions of the libraries that scripts may require, by name."""


_2026_04: Final = RuntimeFacts(
    id="2026.04",
    stage=RuntimeStage.CURRENT,
    node="24.19.0",
    playwright="1.65.1",
    ends_on=date(2028, 4, 30),
    libraries=MappingProxyType(
        {
            "@axe-core/playwright": "4.11.1",
            "@azure/identity": "4.13.0",
            "@azure/keyvault-secrets": "4.10.0",
            "@checkly/playwright-helpers": "1.0.4",
            "@clerk/testing": "1.14.2",
            "@faker-js/faker": "10.3.0",
            "@google-cloud/local-auth": "3.0.1",
            "@kubernetes/client-node": "1.4.0",
            "@opentelemetry/api": "1.9.0",
            "@opentelemetry/exporter-metrics-otlp-grpc": "0.212.0",
            "@opentelemetry/sdk-metrics": "2.5.1",
            "@opentelemetry/sdk-trace-base": "2.5.1",
            "@playwright/test": "1.65.1",
            "@t3-oss/env-nextjs": "0.7.3",
            "@xmldom/xmldom": "0.9.8",
            "aws4": "1.13.2",
            "axios": "1.13.5",
            "axios-cookiejar-support": "5.0.5",
            "crypto-js": "4.2.0",
            "csv-parse": "6.1.0",
            "date-fns": "4.1.0",
            "date-fns-tz": "3.2.0",
            "dotenv": "17.3.1",
            "ethers": "6.16.0",
            "expect": "30.2.0",
            "form-data": "4.0.5",
            "gaxios": "7.1.3",
            "gmail-api-parse-message-ts": "2.2.33",
            "google-auth-library": "10.6.1",
            "googleapis": "171.4.0",
            "graphql": "16.13.0",
            "graphql-tag": "2.12.6",
            "imapflow": "1.2.10",
            "jose": "6.1.3",
            "jsonwebtoken": "9.0.3",
            "lodash": "4.17.23",
            "long": "5.3.2",
            "mailosaur": "11.1.1",
            "moment": "2.30.1",
            "mysql": "2.18.1",
            "mysql2": "3.18.2",
            "nice-grpc": "2.1.14",
            "nice-grpc-client-middleware-deadline": "2.0.20",
            "nice-grpc-client-middleware-retry": "3.1.16",
            "nice-grpc-common": "2.0.4",
            "nice-grpc-error-details": "0.2.12",
            "nice-grpc-opentelemetry": "0.1.23",
            "nice-grpc-prometheus": "0.2.9",
            "nice-grpc-server-health": "2.0.20",
            "nice-grpc-server-reflection": "3.0.3",
            "nice-grpc-web": "3.3.11",
            "node-pop3": "0.11.0",
            "otpauth": "9.5.0",
            "pdf-parse": "1.1.1",
            "pdf2json": "4.0.2",
            "playwright": "1.65.1",
            "protobufjs": "8.0.0",
            "tedious": "19.2.1",
            "tough-cookie": "6.0.0",
            "twilio": "5.12.2",
            "uuid": "11.1.0",
            "web-vitals": "6.2.3",
            "winston": "3.19.0",
            "ws": "8.19.0",
            "xml-crypto": "6.1.2",
            "xml-encryption": "3.1.0",
            "zod": "3.24.3",
        }
    ),
)

_2025_04: Final = RuntimeFacts(
    id="2025.04",
    stage=RuntimeStage.STABLE,
    node="22.20.0",
    playwright="1.51.1",
    ends_on=date(2027, 4, 30),
    libraries=MappingProxyType(
        {
            "@axe-core/playwright": "4.10.1",
            "@azure/identity": "4.9.1",
            "@azure/keyvault-secrets": "4.9.0",
            "@checkly/playwright-helpers": "1.0.4",
            "@clerk/testing": "1.5.1",
            "@faker-js/faker": "9.7.0",
            "@google-cloud/local-auth": "3.0.1",
            "@kubernetes/client-node": "1.1.2",
            "@opentelemetry/api": "1.9.0",
            "@opentelemetry/exporter-metrics-otlp-grpc": "0.200.0",
            "@opentelemetry/sdk-metrics": "2.0.0",
            "@opentelemetry/sdk-trace-base": "2.0.0",
            "@playwright/test": "1.51.1",
            "@t3-oss/env-nextjs": "0.13.0",
            "@xmldom/xmldom": "0.9.8",
            "aws4": "1.13.2",
            "axios": "0.28.0",
            "btoa": "1.2.1",
            "crypto-js": "4.2.0",
            "date-fns": "4.1.0",
            "date-fns-tz": "3.2.0",
            "dotenv": "16.5.0",
            "ethers": "6.13.5",
            "expect": "29.7.0",
            "form-data": "4.0.4",
            "gaxios": "6.7.1",
            "gmail-api-parse-message-ts": "2.2.33",
            "google-auth-library": "9.15.1",
            "googleapis": "148.0.0",
            "graphql": "16.10.0",
            "graphql-tag": "2.12.6",
            "jose": "5.10.0",
            "jsdom": "26.1.0",
            "jsonwebtoken": "9.0.2",
            "lodash": "4.17.21",
            "long": "5.3.2",
            "mailosaur": "8.8.1",
            "moment": "2.30.1",
            "mysql": "2.18.1",
            "nice-grpc": "2.1.12",
            "nice-grpc-client-middleware-deadline": "2.0.20",
            "nice-grpc-client-middleware-retry": "3.1.16",
            "nice-grpc-common": "2.0.4",
            "nice-grpc-error-details": "0.2.12",
            "nice-grpc-opentelemetry": "0.1.23",
            "nice-grpc-prometheus": "0.2.9",
            "nice-grpc-server-health": "2.0.20",
            "nice-grpc-server-reflection": "2.0.14",
            "nice-grpc-web": "3.3.11",
            "node-pop3": "0.9.1",
            "otpauth": "9.4.0",
            "pdf2json": "3.1.4",
            "playwright": "1.51.1",
            "protobufjs": "7.5.0",
            "tedious": "18.6.1",
            "twilio": "5.3.0",
            "uuid": "11.1.0",
            "web-vitals": "6.2.3",
            "ws": "8.18.1",
            "xml-crypto": "6.1.1",
            "xml-encryption": "3.1.0",
            "zod": "3.24.3",
        }
    ),
)

RUNTIMES: Final = MappingProxyType({one.id: one for one in (_2026_04, _2025_04)})
"""The runtimes by id, newest first; a check that names no runtime uses the first."""


RETIRED: Final = ("2024.09", "2024.02", "2023.09", "2023.02", "2022.10")
"""Runtimes of earlier years, newest first: no agent has them, but checks and projects name them."""


def runtime_problem(runtime_id: str) -> str | None:
    """Return why no script can run on it, as the rest of a sentence that begins with the field."""
    if runtime_id in RUNTIMES:
        return None
    known = " or ".join(RUNTIMES)
    if _LIKE_AN_ID.fullmatch(runtime_id) is None:
        return f"is not a runtime; use {known}, or omit it"
    return f"is {runtime_id}, which no agent has; use {known}, or omit it"
