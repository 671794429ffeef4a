"""Mechanisms for tables: Arrow record batches, whole tables, Spark.

:mod:`dpselect.engines.arrow` picks for a record batch. Files and Spark call it.
"""

from dpselect.extras import from_extra

with from_extra("arrow"):
    import pyarrow  # noqa: F401, ICN001 - only to say what to install
