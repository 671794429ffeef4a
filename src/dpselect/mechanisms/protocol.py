"""What every mechanism is."""

import dataclasses
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

from dpselect.candidates import Numbers
from dpselect.guarantees import Guarantee
from dpselect.randomness import Randomness

__all__ = ["Mechanism", "law_of", "stream_of"]


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


@lru_cache(maxsize=256)
def law_of(mechanism: Any) -> str:  # noqa: ANN401 - a frozen dataclass
    """Return what names a law: the mechanism, and every parameter that is not at its default.

    Streams depend on this text. It stays the same if a parameter is added later whose default changes nothing.

    Example:
        >>> import dpselect as dps
        >>> law_of(dps.GEM(epsilon=1, tilt=-1))
        'GEM(epsilon=1.0, tilt=-1.0)'
    """
    settings = {field.name: getattr(mechanism, field.name) for field in dataclasses.fields(mechanism)}
    defaults = {field.name: field.default for field in dataclasses.fields(mechanism)}
    changed = [f"{name}={_text(value)}" for name, value in settings.items() if value != defaults[name]]
    return f"{type(mechanism).__name__}({', '.join(changed)})"


def _text(value: Any) -> str:  # noqa: ANN401 - a parameter
    if hasattr(value, "__dataclass_fields__"):
        return law_of(value)
    return repr(value + 0.0 if isinstance(value, float) else value)  # + 0.0: −0.0 and 0.0 are one tilt


def stream_of(mechanism: Any, randomness: Randomness | None) -> Randomness:  # noqa: ANN401 - a frozen dataclass
    """Return the randomness of one mechanism's picks, from what a caller passed as ``randomness=``."""
    return Randomness.given(randomness).serving(law_of(mechanism))
