"""How far along a long job is: a bar on a terminal, silence elsewhere."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

__all__ = ["tracked"]

Item = TypeVar("Item")


def tracked(items: Iterable[Item], *, total: int, label: str, shown: bool | None) -> Iterator[Item]:
    """Yield the items, and show how many are done.

    Args:
        items: What to go through.
        total: How many there are.
        label: What is being done. Never anything private.
        shown: Whether to show it; ``None`` means on a terminal only.
    """
    if shown is False:
        yield from items
        return
    from tqdm import tqdm  # noqa: PLC0415 - only where a bar is wanted

    yield from tqdm(items, total=total, desc=label, disable=None if shown is None else not shown)
