"""Projects: what is deployed from code, and the deployments themselves."""

from typing import Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    UniqueConstraint,
)

from service.db.tables.accounts import account
from service.db.tables.conventions import declared

project: Final = Table(
    "project",
    declared,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("logical_id", String, nullable=False),  # its name in code
    Column("name", String, nullable=False),
    Column("repo_url", String),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger),  # None: never changed
    UniqueConstraint("account_id", "logical_id"),
)

project_resource: Final = Table(
    "project_resource",
    declared,
    Column("project_id", ForeignKey(project.c.id, ondelete="CASCADE"), primary_key=True),
    Column("type", String, primary_key=True),  # as bodies of deployments spell it
    Column("logical_id", String, primary_key=True),
    Column("physical_id", String, nullable=False),  # no foreign key: people delete things by hand
    Column("source_file", String),  # None: not known
    Column("digest", LargeBinary),  # keyed, of what was sent and what came of it; None: not known
    Index(None, "type", "physical_id"),
)

deployment: Final = Table(
    # No foreign key to the project, which a deployment may create or delete.
    "deployment",
    declared,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("logical_id", String, nullable=False),  # the project's
    Column("status", String, nullable=False),  # service.projects.model.DeploymentStatus
    Column("progress", Integer, nullable=False),  # percent
    Column("error", JSON(none_as_null=True)),
    Column("result", JSON(none_as_null=True)),
    Column("created_ms", BigInteger, nullable=False),
    Column("started_ms", BigInteger),
    Column("ended_ms", BigInteger),  # None: it goes on
    Column("cancel_ms", BigInteger),  # when somebody asked to cancel it
    Column("lease_ms", BigInteger, nullable=False),  # until then its process must have ended it
    Column("key_id", String),  # who asked for it, as in the audit log; None: a user, or not known
    Column("user_id", String),  # None: a key, or not known
    Index(None, "account_id", "logical_id", "id"),
    Index(None, "created_ms"),
)

import_plan: Final = Table(
    "import_plan",
    declared,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey(account.c.id, ondelete="CASCADE"), nullable=False),
    Column("project_id", ForeignKey(project.c.id, ondelete="CASCADE"), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("applied_ms", BigInteger),  # None: its things are not the project's yet
    Column("committed_ms", BigInteger),  # None: no deployment deletes them
    Column("resources", JSON, nullable=False),  # each as type, logical id and physical id
    Index(None, "account_id", "id"),
    Index(None, "project_id"),
)
