"""Releases of data frames: named picks in the same kind of frame, paid for."""

from dataclasses import dataclass
from typing import Any

from dpselect import parameters as check
from dpselect.engines.local import pick_units
from dpselect.mechanisms.base import Mechanism
from dpselect.release.inputs import Inputs
from dpselect.release.payment import Charge, Payment, Receipt, Terms
from dpselect.tables.conversion import convert_like, is_spark
from dpselect.tables.layout import Layout
from dpselect.tables.stored import AnyTable, open_table

__all__ = ["ReleasedTable", "release_table"]


@dataclass(frozen=True, kw_only=True)
class ReleasedTable:
    """Picks that are paid for."""

    picks: Any
    """A frame of the kind of the table, with columns of units and candidates."""
    mechanism: Mechanism
    receipt: Receipt | None
    """What was paid, if a ledger was charged."""


def release_table(
    table: Any,  # noqa: ANN401 - any frame
    mechanism: Mechanism,
    payment: Payment,
    *,
    unit: str = "user",
    candidate: str | None = "candidate",
    score: str = "score",
    sensitivity: str | float = "sensitivity",
    candidates: AnyTable | None = None,
) -> ReleasedTable:
    """Release one private pick for each user of a table: :func:`dpselect.select_table` with a ledger.

    The first call computes the picks, charges the ledger and returns them. The same call made again, after a crash
    too, costs nothing and gives the same picks. Bad input costs nothing. The picks, the fingerprint and the price
    are those of :func:`release_picks`, which writes files and keeps what an interrupted run has finished.

    Privacy:
        That of the mechanism, for each user, charged once.

    Cost:
        That of :func:`dpselect.select_table`, and a hash of the table. A Spark frame is charged first and computed
        when you use the picks: see :func:`dpselect.release.spark.release_frame`.

    Args:
        table: Any table that :func:`dpselect.select_table` takes.
        mechanism: Any mechanism.
        payment: :class:`Charge` to a ledger, or :class:`KeyFile`. For a Spark frame it must be a charge.
        unit: The column of users.
        candidate: The column of candidates; ``None`` if the n-th score of a list is for row n of ``candidates``.
        score: The column of scores. Private.
        sensitivity: The column of sensitivities, in the table or in ``candidates``, or one number for all.
        candidates: A second table with the sensitivity of each candidate.

    Raises:
        BudgetError: If the ledger refuses the release.
        KeyReuseError: If the key file belongs to another release.
        ValueError: If the input breaks a rule.

    Example:
        >>> import tempfile, pathlib, dpselect as dps
        >>> from dpselect.budget import Ledger
        >>> from dpselect.release import Charge, release_table
        >>> home = tempfile.TemporaryDirectory()
        >>> ledger = Ledger.create(pathlib.Path(home.name) / "budget.db")
        >>> ledger.add_population("readers", epsilon=10.0)
        >>> table = {"user": [1, 1], "candidate": ["tea", "rum"], "score": [9.0, 1.0]}
        >>> charge = Charge(ledger, "readers", "spring")
        >>> first = release_table(table, dps.GEM(5.0), charge, sensitivity=0.1)
        >>> again = release_table(table, dps.GEM(5.0), charge, sensitivity=0.1)
        >>> first.picks == again.picks, first.receipt.charged, again.receipt.charged
        (True, True, False)
        >>> ledger.close(); home.cleanup()

    References:
        docs/decisions/0008-charge-before-release.md
    """
    check.require_attributes("mechanism", mechanism, "select", "guarantee")
    check.require_attributes("payment", payment, "pay_for", "check")
    layout = Layout(unit=unit, candidate=candidate, score=score, sensitivity=sensitivity)
    if is_spark(table):
        from dpselect.release.spark import release_frame  # noqa: PLC0415 - for Spark alone

        if not isinstance(payment, Charge):
            raise ValueError(f"payment must be a Charge for a Spark frame, got {type(payment).__name__}")
        if candidates is not None:
            layout = layout.with_candidates(open_table(candidates, None, layout.names, layout.number_names))
        frame = release_frame(table, mechanism, payment, layout=layout)
        return ReleasedTable(picks=frame.picks, mechanism=mechanism, receipt=frame.receipt)
    inputs = Inputs.open(table, layout, candidates, None)
    terms = Terms.of_tables("select", mechanism, inputs)
    payment.check(terms)
    picks, receipt = payment.pay_for(terms, lambda key: pick_units(inputs.table, inputs.layout, mechanism, key))
    return ReleasedTable(picks=convert_like(table, picks), mechanism=mechanism, receipt=receipt)
