"""Status pages, incidents, subscriptions and mails that wait."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_COUNTED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add ten tables."""
    _create_incident()
    _create_page()
    _create_service()
    _create_incident_service()
    _create_incident_update()
    _create_page_card()
    _create_page_key()
    _create_subscription()
    _create_card_service()
    _create_mail()


def _create_incident() -> None:
    op.create_table(
        "status_incident",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("severity", sa.String(), nullable=False),
        sa.Column("check_id", sa.String(), nullable=True),
        sa.Column("notifies", sa.Boolean(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
            name=op.f("fk_status_incident_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_status_incident")),
    )
    op.create_index(
        op.f("ix_status_incident_account_id_id"),
        "status_incident",
        ["account_id", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_status_incident_check_id"), "status_incident", ["check_id"], unique=False
    )


def _create_page() -> None:
    op.create_table(
        "status_page",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("custom_domain", sa.String(), nullable=True),
        sa.Column("is_private", sa.Boolean(), nullable=False),
        sa.Column("doc", sa.JSON(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
            name=op.f("fk_status_page_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_status_page")),
        sa.UniqueConstraint("custom_domain", name=op.f("uq_status_page_custom_domain")),
        sa.UniqueConstraint("url", name=op.f("uq_status_page_url")),
    )
    op.create_index(
        op.f("ix_status_page_account_id_id"), "status_page", ["account_id", "id"], unique=False
    )


def _create_service() -> None:
    op.create_table(
        "status_service",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
            name=op.f("fk_status_service_account_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_status_service")),
    )
    op.create_index(
        op.f("ix_status_service_account_id_id"),
        "status_service",
        ["account_id", "id"],
        unique=False,
    )


def _create_incident_service() -> None:
    op.create_table(
        "status_incident_service",
        sa.Column("incident_id", sa.String(), nullable=False),
        sa.Column("service_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["incident_id"],
            ["status_incident.id"],
            name=op.f("fk_status_incident_service_incident_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["service_id"],
            ["status_service.id"],
            name=op.f("fk_status_incident_service_service_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "incident_id", "service_id", name=op.f("pk_status_incident_service")
        ),
    )
    op.create_index(
        op.f("ix_status_incident_service_service_id"),
        "status_incident_service",
        ["service_id"],
        unique=False,
    )


def _create_incident_update() -> None:
    op.create_table(
        "status_incident_update",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("incident_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("public_ms", sa.BigInteger(), nullable=False),
        sa.Column("notifies", sa.Boolean(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["incident_id"],
            ["status_incident.id"],
            name=op.f("fk_status_incident_update_incident_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_status_incident_update")),
    )
    op.create_index(
        op.f("ix_status_incident_update_incident_id_public_ms"),
        "status_incident_update",
        ["incident_id", "public_ms"],
        unique=False,
    )


def _create_page_card() -> None:
    op.create_table(
        "status_page_card",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("page_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["page_id"],
            ["status_page.id"],
            name=op.f("fk_status_page_card_page_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_status_page_card")),
    )
    op.create_index(
        op.f("ix_status_page_card_page_id"), "status_page_card", ["page_id"], unique=False
    )


def _create_page_key() -> None:
    op.create_table(
        "status_page_key",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("page_id", sa.String(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("masked", sa.String(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["page_id"],
            ["status_page.id"],
            name=op.f("fk_status_page_key_page_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_status_page_key")),
        sa.UniqueConstraint("hash", name=op.f("uq_status_page_key_hash")),
    )
    op.create_index(
        op.f("ix_status_page_key_page_id"), "status_page_key", ["page_id"], unique=False
    )


def _create_subscription() -> None:
    op.create_table(
        "status_subscription",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("page_id", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("address_key", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=True),
        sa.Column("token_until_ms", sa.BigInteger(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["page_id"],
            ["status_page.id"],
            name=op.f("fk_status_subscription_page_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_status_subscription")),
        sa.UniqueConstraint(
            "page_id", "address_key", name=op.f("uq_status_subscription_page_id_address_key")
        ),
        sa.UniqueConstraint("token_hash", name=op.f("uq_status_subscription_token_hash")),
    )
    op.create_index(
        op.f("ix_status_subscription_token_until_ms"),
        "status_subscription",
        ["token_until_ms"],
        unique=False,
    )


def _create_card_service() -> None:
    op.create_table(
        "status_card_service",
        sa.Column("card_id", sa.String(), nullable=False),
        sa.Column("service_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["card_id"],
            ["status_page_card.id"],
            name=op.f("fk_status_card_service_card_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["service_id"],
            ["status_service.id"],
            name=op.f("fk_status_card_service_service_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("card_id", "service_id", name=op.f("pk_status_card_service")),
    )
    op.create_index(
        op.f("ix_status_card_service_service_id"),
        "status_card_service",
        ["service_id"],
        unique=False,
    )


def _create_mail() -> None:
    op.create_table(
        "status_mail",
        sa.Column("id", _COUNTED, nullable=False),
        sa.Column("subscription_id", sa.String(), nullable=False),
        sa.Column("update_id", sa.String(), nullable=True),
        sa.Column("salt", sa.LargeBinary(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_ms", sa.BigInteger(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["subscription_id"],
            ["status_subscription.id"],
            name=op.f("fk_status_mail_subscription_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["update_id"],
            ["status_incident_update.id"],
            name=op.f("fk_status_mail_update_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_status_mail")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_status_mail_due_ms"), "status_mail", ["due_ms"], unique=False)
    op.create_index(
        op.f("ix_status_mail_subscription_id_update_id"),
        "status_mail",
        ["subscription_id", "update_id"],
        unique=True,
    )
    op.create_index(op.f("ix_status_mail_update_id"), "status_mail", ["update_id"], unique=False)
