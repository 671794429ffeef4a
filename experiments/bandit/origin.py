"""Where the numbers of a section come from, said on its figure and in a table below it."""

from matplotlib.figure import Figure

from experiments.bandit.kept import ORIGIN, PLAYED
from experiments.experiment import Listing
from experiments.tables import Tables

__all__ = ["note", "origin", "provenance"]


def origin(data: Tables) -> dict[str, str]:
    """Return where an experiment's tables come from."""
    table = data[ORIGIN]
    return dict(zip(table["name"].to_pylist(), map(str, table["value"].to_pylist()), strict=True))


def note(figure: Figure, data: Tables) -> None:
    """Say above a figure that it shows kept tables, if it does."""
    facts = origin(data)
    if facts != PLAYED:
        words = f"Not computed by this fast run: from {facts['source']} at commit {facts['commit'][:10]}"
        figure.suptitle(words, fontsize=9, fontstyle="italic")


def provenance(data: Tables) -> Listing:
    """Return where the numbers come from, for readers."""
    return Listing(
        caption="The origin of the numbers. A run of a thousand steps would show none of this, so a fast run shows "
        "the tables of a full run that are kept with the code.",
        columns=["", "value"],
        rows=[[name, value] for name, value in origin(data).items()],
    )
