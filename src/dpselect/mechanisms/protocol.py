"""What every mechanism is."""

from typing import Any, Protocol, runtime_checkable

from dpselect.candidates import Numbers
from dpselect.guarantees import Guarantee
from dpselect.randomness import Randomness

__all__ = ["Mechanism"]


@runtime_checkable
class Mechanism(Protocol):
    """An immutable value made of public numbers; private data and randomness are arguments.

    Scores are private. Sensitivities, the list of candidates and a mechanism's fields are public, and so
    are the further numbers that some mechanisms take with a call (``offsets=``, ``anchors=``).

    Scores may be an array (last axis candidates, leading axes a batch), a tuple ``(values, offsets)`` of
    rows of different length, or an Arrow list array. Sensitivities broadcast against scores.
    """

    @property
    def guarantee(self) -> Guarantee:
        """The privacy of one pick."""
        ...

    def pmf(self, scores: Numbers, sensitivities: Numbers) -> Any:  # noqa: ANN401 - the form of the scores
        """Return the exact probability of each candidate, in the form of the scores.

        Deterministic. **Not private**: probabilities reveal scores. They are for public or synthetic data,
        for audits, and for whoever may see the scores anyway.
        """
        ...

    def select(self, scores: Numbers, sensitivities: Numbers, *, randomness: Randomness | None = None) -> Any:  # noqa: ANN401 - an index, or an array of indices
        """Return the index of one candidate for each row, drawn privately.

        Without ``randomness`` a fresh secret key comes from the operating system.
        """
        ...
