"""Folders with checks as code."""

from pathlib import Path
from typing import Final

CHECK: Final = """
type: URL
name: Home
group: shop
channels: [ops-mail]
privateLocations: [cellar, default]
frequency: 5
triggerIncident:
  { service: Checkout, severity: MAJOR, name: Down, description: It is., notifySubscribers: false }
request:
  url: http://127.0.0.1:9/
assertions:
  - { source: STATUS_CODE, comparison: EQUALS, target: 200 }
"""
STEPS: Final = """
type: MULTI_STEP
name: Order
group: Shop
privateLocations: [default]
scriptFile: order.spec.ts
dependencyFiles: [lib/shop.ts]
variables: { TOKEN: "${SHOP_TOKEN}" }
"""
OTHERS: Final = """
kind: group
id: shop
name: Shop
tags: [shop]
variables: { TENANT: north, NUMBER: 7 }
setupScriptFile: setup.js
privateLocations: [default]
---
kind: alert-channel
id: ops-mail
type: EMAIL
config: { address: ops@example.com }
autoSubscribe: false
checks: [Home]
groups: [shop]
---
kind: private-location
name: Cellar
slugName: cellar
---
kind: status-page-service
name: Checkout
---
kind: status-page
name: Shop status
url: shop
cards:
  - { name: Shop, services: [Checkout] }
---
kind: maintenance-window
name: Nightly
startsAt: "2027-01-01T02:00:00Z"
endsAt: "2027-01-01T03:00:00Z"
repeatInterval: 1
repeatUnit: DAY
"""
SCRIPT: Final = """import { test, expect } from '@playwright/test';
import { shop } from './lib/shop';
test('order', async () => { expect(`${shop} ${process.env.TENANT}`).toBe('shop north'); });
"""


def write_project(root: Path, **changes: str) -> Path:
    """A project with one of each kind; `changes` replace its files, by the part before the dot."""
    files = {
        "picket.yaml": "project: { id: shop, name: Shop checks }\n",
        "home.yaml": CHECK,
        "order.yaml": STEPS,
        "others.yaml": OTHERS,
        "order.spec.ts": SCRIPT,
        "setup.js": "// before\n",
        "lib/shop.ts": "export const shop = 'shop';\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(changes.get(name.partition(".")[0], text))
    return root
