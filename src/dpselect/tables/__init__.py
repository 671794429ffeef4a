"""Tables of units and candidates: how they are stored, read, checked and written."""

from dpselect.extras import from_extra

with from_extra("arrow"):
    import pyarrow  # noqa: F401, ICN001 - only to say what to install
