"""The variables of runs on SQLite, by the driver: a claim asks for them."""

import json
from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection

from service.db.sqlite_group import driver
from service.variables.model import VariableRow, read_row

_OF_RUNS: Final = """
SELECT level, owner_id, key, value, locked, secret FROM variable
WHERE level = 'account' AND owner_id = ?
UNION ALL
SELECT level, owner_id, key, value, locked, secret FROM variable
WHERE level = 'group' AND owner_id IN (SELECT value FROM json_each(?))
UNION ALL
SELECT level, owner_id, key, value, locked, secret FROM variable
WHERE level = 'check' AND owner_id IN (SELECT value FROM json_each(?))
"""


def find_for_jobs(
    connection: Connection,
    account_id: str,
    *,
    group_ids: Iterable[str],
    check_ids: Iterable[str],
) -> list[VariableRow]:
    """The variables of the account, these groups and these checks."""
    asked = (account_id, json.dumps(list(group_ids)), json.dumps(list(check_ids)))
    return [read_row(account_id, row) for row in driver(connection).execute(_OF_RUNS, asked)]
