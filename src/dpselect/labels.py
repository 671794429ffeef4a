"""Scores with labels: a mapping, a pandas Series or a pandas DataFrame. Labels must match, and picks are labels.

A candidate with another candidate's sensitivity would void the guarantee. So numbers with labels go with scores
that have the same labels, and anything that could be read in two ways is refused with the call to make.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.arrays import PLAIN


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of candidates, and of units if the scores are a DataFrame."""

    candidates: list[Any]
    axes: tuple[Any, ...] = field(default=(), repr=False)
    """The axes of scores: one of a Series, two of a DataFrame, none of a mapping."""

    def name_picks(self, picks: NDArray[Any], *, lists: bool) -> Any:
        """Return the labels of picks, which are positions; ``None`` for the padding of lists."""
        if not picks.ndim:
            return self.candidates[int(picks)]
        names = np.empty(picks.size, dtype=object)
        names[:] = [None if pick < 0 else self.candidates[pick] for pick in picks.reshape(-1).tolist()]
        shaped = names.reshape(picks.shape)
        if lists and picks.ndim == 1:
            return shaped.tolist()
        if len(self.axes) == 2 and picks.shape[: picks.ndim - lists] == self.axes[0].shape:
            import pandas as pd  # noqa: PLC0415 - the caller has it

            if lists:
                return pd.DataFrame(shaped, index=self.axes[0], columns=range(1, picks.shape[-1] + 1))
            return pd.Series(shaped.tolist(), index=self.axes[0])
        return shaped

    def name_candidates(self, numbers: NDArray[Any]) -> Any:
        """Return one number for each candidate, in the form of the scores."""
        if not self.axes and numbers.ndim == 1:
            return dict(zip(self.candidates, numbers.tolist(), strict=True))
        if numbers.shape == tuple(axis.size for axis in self.axes):
            import pandas as pd  # noqa: PLC0415 - the caller has it

            return (pd.Series if numbers.ndim == 1 else pd.DataFrame)(numbers, *self.axes)
        return numbers


def is_labelled(numbers: Any) -> bool:
    """Tell whether numbers have labels, or are a table whose columns have names."""
    if numbers is None or isinstance(numbers, PLAIN):
        return False
    return isinstance(numbers, Mapping) or _has_axes(numbers) or _is_frame(numbers)


def split_labels(scores: Any, **others: Any) -> tuple[Any, dict[str, Any], Labels | None]:
    """Return scores and other numbers without labels, in the order of the scores' labels, and these labels."""
    labels = None
    if isinstance(scores, Mapping):
        labels = Labels(list(scores))
    elif _has_axes(scores):
        labels = Labels(scores.axes[-1].tolist(), tuple(scores.axes))
    has_labels = any(isinstance(numbers, Mapping) or _has_axes(numbers) for numbers in others.values())
    if _is_frame(scores) if labels is None else len(labels.axes) == 2 and not has_labels:
        raise ValueError(_unclear("scores"))
    plain = {name: _aligned(name, numbers, labels) for name, numbers in others.items()}
    if labels is not None:
        scores = scores.to_numpy() if labels.axes else _mapped("scores", scores)
    return scores, plain, labels


def _aligned(name: str, numbers: Any, labels: Labels | None) -> Any:
    """Return numbers in the order of labels; those without labels stay as they are."""
    if isinstance(numbers, Mapping):
        if labels is None:
            raise ValueError(f"{name} must have labels only if scores have the same; pass both as mappings")
        if len(numbers) != len(labels.candidates) or any(label not in numbers for label in labels.candidates):
            raise ValueError(f"{name} must have the labels of scores: a number for each candidate, and no others")
        return _mapped(name, {label: numbers[label] for label in labels.candidates})
    if _is_frame(numbers) and (labels is None or not _has_axes(numbers)):
        raise ValueError(_unclear(name))
    if not _has_axes(numbers):
        return numbers
    if labels is None:  # then those of a Series say nothing
        return numbers.to_numpy()
    if not labels.axes:
        if numbers.ndim != 1 or not numbers.index.is_unique:
            raise ValueError(f"{name} must be a Series with one number for each label of scores")
        return _aligned(name, dict(zip(numbers.index.tolist(), numbers.tolist(), strict=True)), labels)
    for axis in range(1, min(len(labels.axes), numbers.ndim) + 1):
        ours, theirs = labels.axes[-axis], numbers.axes[-axis]
        if ours.equals(theirs):
            continue
        if len(ours) != len(theirs) or not theirs.is_unique or set(ours) != set(theirs):
            raise ValueError(
                f"{name} must have the labels of scores, each once, in any order; pass {name}.to_numpy() to go by "
                "position"
            )
        numbers = numbers.reindex(ours, axis=numbers.ndim - axis)
    return numbers.to_numpy()


def _mapped(name: str, numbers: Mapping[Any, Any]) -> Any:
    values = list(numbers.values())
    if any(np.ndim(value) for value in values):
        raise ValueError(
            f"{name} must be one number for each label if they are a mapping; for a table with columns of users, "
            "candidates and scores use dps.select_table(table, mechanism)"
        )
    return values


def _has_axes(numbers: Any) -> bool:
    return type(numbers).__module__.partition(".")[0] == "pandas" and hasattr(numbers, "axes")


def _is_frame(numbers: Any) -> bool:
    """Tell whether numbers are a table: a DataFrame of any library, an Arrow table or a DuckDB relation."""
    return hasattr(numbers, "columns") and not isinstance(numbers, np.ndarray)


def _unclear(name: str) -> str:
    return (
        f"{name} must not be a table whose columns may or may not be candidates: for one number for each candidate "
        'pass a column, such as table["score"]; for a row of numbers for each user pass table.to_numpy(), or '
        "(pandas) sensitivities with the labels of the columns, or use dps.select_table(table, mechanism, "
        "candidate_columns=[…]); for columns of users, candidates and scores use dps.select_table(table, mechanism)"
    )
