"""From a table to named picks. Arrow and the rest are loaded by the first call."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from dpselect.randomness import Randomness

if TYPE_CHECKING:
    from dpselect.mechanisms import Mechanism


def select_table(
    table: Any,
    mechanism: "Mechanism | float",
    *,
    unit: str | None = "user",
    candidate: str | None = "candidate",
    score: str = "score",
    sensitivity: str | float | None = None,
    weight: str | None = None,
    candidates: Any = None,
    candidate_columns: Sequence[str] = (),
    on_bad_unit: Literal["raise", "skip"] = "raise",
    randomness: Randomness | bytes | None = None,
) -> Any:
    """Return one private pick for each user of a table, by name; or a private list, with a :class:`~dpselect.TopK`.

    The table has a row for each user and candidate, in any order, or a row for each user, with lists or with a
    column for each candidate. The picks are a frame like it, or an Arrow table, with two columns: the
    user and the picked candidate. With a ``TopK`` it has a row for each pick and a third column, ``rank``, from 1.
    Users of a table with a row for each candidate come in the order of their identifiers, others in that of rows.

    Privacy:
        That of the mechanism, for each user. Without ``randomness`` every call is another release and costs ε
        again. :func:`dpselect.release.release` is the same call with a ledger: run again, it costs nothing and
        gives the same picks.

    Cost:
        That of the mechanism; a table with a row for each candidate is sorted first. All picks are in memory;
        :func:`dpselect.release.release` writes them to a file, batch by batch.

    Args:
        table: A pandas or polars DataFrame, a polars LazyFrame, a Spark frame, a mapping of columns; a pyarrow
            table, a DuckDB relation, anything with the Arrow C stream interface, or the path of a CSV, Parquet
            or Arrow file, and then the picks are a pyarrow table.
        mechanism: Any mechanism; a :class:`~dpselect.TopK` for lists. A number is an ε: it means
            :class:`~dpselect.HeterogeneousNoisyMax` if there are sensitivities, and :class:`~dpselect.TopShare` if
            there are none, which is for rows that are each about one person.
        unit: The column of users: integers, text or bytes. A unit is what one person's data belongs to. ``None`` if
            all rows are candidates of one: then there is one pick, or one list.
        candidate: The column of candidates; ``None`` if the n-th score of a list is for row n of ``candidates``.
        score: The column of scores. Private.
        sensitivity: The column of sensitivities, in the table or in ``candidates``, or one number for all; by
            default the column ``"sensitivity"``, if there is one.
        weight: The column of public weights, in the table or in ``candidates``, for mechanisms that take them.
        candidates: A second table with the public numbers of each candidate, for all users.
        candidate_columns: The columns of scores, if each candidate has one of its own. Their names are the
            candidates. Sensitivities and weights then come from ``candidates``, in any order.
        on_bad_unit: ``"raise"``, or ``"skip"`` to give users with bad rows no pick. They have a row without a
            candidate, and a column ``problem`` names the column and the rule. It is empty for all others.
        randomness: 32 secret bytes, which give each user the same pick again, whatever the order of rows; or
            ``Randomness.seeded(…)`` for experiments. A fresh key by default.

    Raises:
        ValueError: If the input breaks a rule. The message names the row (from 0), the user, the column and the
            rule, and no score.

    Example:
        >>> import dpselect as dps, pyarrow as pa
        >>> table = pa.table({
        ...     "user": ["ann", "ann", "bob"], "candidate": ["tea", "rum", "rum"],
        ...     "score": [9.0, 1.0, 2.0], "sensitivity": [0.1, 0.1, 0.1],
        ... })
        >>> dps.select_table(table, dps.GEM(5.0)).to_pylist()
        [{'user': 'ann', 'candidate': 'tea'}, {'user': 'bob', 'candidate': 'rum'}]
        >>> lists = dps.TopK(dps.GEM(5.0), count=2, short_rows="pad")
        >>> dps.select_table(table, lists).to_pylist()[:2]
        [{'user': 'ann', 'rank': 1, 'candidate': 'tea'}, {'user': 'ann', 'rank': 2, 'candidate': 'rum'}]
        >>> dps.select_table(table.drop_columns("sensitivity"), 20.0).to_pylist()  # by TopShare(20.0)
        [{'user': 'ann', 'candidate': 'tea'}, {'user': 'bob', 'candidate': 'rum'}]
        >>> wide = {"user": ["ann", "bob"], "tea": [9.0, None], "rum": [1.0, 2.0]}
        >>> columns = ["tea", "rum"]
        >>> dps.select_table(wide, dps.GEM(5.0), candidate_columns=columns, sensitivity=0.1, on_bad_unit="skip")
        {'user': ['ann', 'bob'], 'candidate': ['tea', None],
        'problem': [None, "column 'tea' is missing or not a number"]}
    """
    from dpselect.engines import check_mechanism, choose_mechanism, open_tables  # noqa: PLC0415 - its engines load Arrow, an extra
    from dpselect.tables.layout import Layout  # noqa: PLC0415

    check_mechanism(mechanism)
    key = Randomness.key_for_units(randomness)
    layout = Layout(
        unit=unit,
        candidate=candidate,
        score=score,
        sensitivity=sensitivity,
        weight=weight,
        candidates=candidates,
        candidate_columns=candidate_columns,
        on_bad_unit=on_bad_unit,
    )
    tables = open_tables(table, layout)
    used, _ = choose_mechanism(mechanism, tables)
    return tables.pick(used, key).picks
