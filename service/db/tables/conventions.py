"""What all tables keep to.

Times are milliseconds since 1970 in UTC (`_ms`), by the database's clock.
Ids are text made by us (`service.db.ids`), but a job's is a number that the database counts up.
"""

from typing import Final

from sqlalchemy import BigInteger, Integer, MetaData

declared: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
"""Holds the tables whose modules were imported: `schema` has imported all of them."""

# SQLite counts only a column that is called INTEGER, and holds 64 bits in it anyway.
COUNTED: Final = BigInteger().with_variant(Integer(), "sqlite")
