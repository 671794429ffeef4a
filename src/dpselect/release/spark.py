"""Releases of Spark frames: fingerprint, charge, and the frame of picks with the release's key."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpselect.engines import spark
from dpselect.mechanisms.base import Mechanism
from dpselect.release.payment import Charge, Receipt, Terms
from dpselect.tables.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ReleasedFrame", "release_frame"]


@dataclass(frozen=True, kw_only=True)
class ReleasedFrame:
    """A frame of picks that is paid for: one release, however often and wherever it is computed."""

    picks: "DataFrame"
    receipt: Receipt


def release_frame(
    frame: "DataFrame",
    mechanism: Mechanism,
    charge: Charge,
    *,
    layout: Layout | None = None,
    units_are_distinct: bool = False,
) -> ReleasedFrame:
    """Charge a release to a ledger, and return the frame of picks with the release's key.

    What can be checked at once (columns, distinct units) is checked before the charge. The picks themselves are
    computed when you use the frame, after the charge: a bad score costs ε. Called again with the same frame and
    names, it costs nothing and gives the same picks.

    Privacy:
        That of the mechanism, for each unit. The frame must have the same rows whenever it is computed: checkpoint
        it if what is behind it may change.

    Cost:
        One reading of the frame for its fingerprint, and that of :func:`dpselect.engines.spark.select`.

    Args:
        frame: The table: list columns, or a row for each candidate.
        mechanism: Any mechanism.
        charge: The ledger, population and release.
        layout: Where the columns are.
        units_are_distinct: Whether you know that each unit has one row of lists.

    Example:
        Given a session, ``spark``, and a ledger with the population "readers":

        >>> import dpselect as dps
        >>> from dpselect.release import Charge
        >>> from dpselect.release.spark import release_frame
        >>> rows = [("ann", "tea", 9.0, 0.1), ("ann", "milk", 1.0, 0.1), ("bob", "rum", 2.0, 0.1)]
        >>> frame = spark.createDataFrame(rows, ["user", "candidate", "score", "sensitivity"])
        >>> released = release_frame(frame, dps.NoisyMax(epsilon=5.0), Charge(ledger, "readers", "spring"))
        >>> released.picks.sort("user").collect()
        [Row(user='ann', candidate='tea'), Row(user='bob', candidate='rum')]

    References:
        docs/decisions/0008-charge-before-release.md
    """
    terms = Terms("select", mechanism, lambda _: spark.fingerprint(frame, layout))
    picks, receipt = charge.pay_for(
        terms,
        lambda key: spark.select(frame, mechanism, key=key, layout=layout, units_are_distinct=units_are_distinct),
    )
    return ReleasedFrame(picks=picks, receipt=receipt)
