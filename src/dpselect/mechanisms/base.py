"""The interface of every mechanism: public parameters, a guarantee, and a law."""

import dataclasses
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, final

from dpselect.arrays import is_elsewhere
from dpselect.candidates import Batch, read_batch
from dpselect.guarantees import Guarantee
from dpselect.inputs import Numbers
from dpselect.kernels.arrays import IndexArray
from dpselect.laws import Law
from dpselect.randomness import Randomness


class Mechanism(ABC):
    """An immutable value made of public numbers. Private data and randomness are arguments of its methods.

    Scores are private. Sensitivities, the list of candidates and a mechanism's fields are public. The further
    numbers that some mechanisms take with a call (``offsets=``, ``weights=``) are public too.

    A mechanism is a frozen dataclass. You may pass ε first and without its name; all other fields are keyword-only.
    It supplies a guarantee, a label and a law; ``pmf`` and ``select`` are the same for all mechanisms. A list of
    picks (:class:`~dpselect.TopK`) is a mechanism too.
    """

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The privacy guarantee of one call for one row: of its pick, or of its whole list."""

    @property
    @abstractmethod
    def label(self) -> str:
        """A short name of the mechanism, without its budget."""

    @property
    def count(self) -> int | None:
        """The length of the list that each row gets; ``None`` for a single pick."""
        return None

    @property
    def least_size(self) -> int:
        """The smallest number of candidates that a row may have."""
        return 1

    @property
    def uses_sensitivities(self) -> bool:
        """Whether a call must pass sensitivities. Where it need not, they are ignored."""
        return True

    @property
    def takes(self) -> tuple[str, ...]:
        """The public numbers that a call may pass, besides sensitivities: ``"offsets"`` or ``"weights"``."""
        return ()

    @abstractmethod
    def law(self, sizes: IndexArray) -> Law:
        """Return the law of the picks, given the number of candidates in each row."""

    @final
    def pmf(
        self,
        scores: Numbers,
        sensitivities: Numbers | None = None,
        *,
        offsets: Numbers | None = None,
        weights: Numbers | None = None,
    ) -> Any:
        """Return the exact probability of each candidate, in the form of the scores.

        This is deterministic and **not private**: probabilities reveal scores. Use it for public or synthetic
        data, for audits, and for readers who may see the scores.

        Args:
            scores: An array whose last axis holds the candidates and whose leading axes are a batch (of NumPy,
                torch, CuPy, JAX or any library with DLPack), ragged rows ``(values, offsets)``, an Arrow list
                array, or a mapping or pandas Series with labels.
            sensitivities: How far one person can move each score. They broadcast against the scores. Mechanisms
                for rows about one person, such as :class:`~dpselect.TopShare`, need none.
            offsets: Public numbers that are added to the scores, for mechanisms that take them.
            weights: Public weights, for mechanisms that take them.
        """
        batch = self.read(scores, sensitivities, offsets, weights)
        batch.check_scores()
        return batch.restore_candidates(self.law(batch.sizes).pmf(batch))

    @final
    def select(
        self,
        scores: Numbers,
        sensitivities: Numbers | None = None,
        *,
        offsets: Numbers | None = None,
        weights: Numbers | None = None,
        randomness: Randomness | None = None,
    ) -> Any:
        """Return the index of one candidate for each row, drawn privately; or ``count`` of them, in order.

        One row without leading axes gives a plain ``int``. Many rows give an array of the library of the scores, on
        their device. If the scores have labels (a mapping, a pandas Series), the pick is a label. Lists have a last
        axis of picks, and a row of labels is a list of labels.

        Args:
            scores: The private scores, in any form that ``pmf`` accepts.
            sensitivities: How far one person can move each score. They broadcast against the scores. Mechanisms
                for rows about one person, such as :class:`~dpselect.TopShare`, need none.
            offsets: Public numbers that are added to the scores, for mechanisms that take them.
            weights: Public weights, for mechanisms that take them.
            randomness: A key and the unit of each row, to get the same pick again; or a seed, for experiments. By
                default a fresh secret key from the operating system.
        """
        if sensitivities is None and offsets is None and is_elsewhere(scores):
            picks = self.select_there(scores, weights, self._stream(randomness))
            if picks is not None:
                return picks
        batch = self.read(scores, sensitivities, offsets, weights)
        law = self.law(batch.sizes)
        if not law.checks_scores:
            batch.check_scores()
        if law.refusal is not None:
            raise ValueError(law.refusal)
        stream = self._stream(randomness)
        stream.check_rows(batch.rows)
        return batch.restore_picks(law.select(batch, stream))

    def select_there(self, scores: Any, weights: Any, stream: Randomness) -> Any:  # noqa: ARG002
        """Return picks from scores on another device, made there; ``None`` if the scores must be copied first."""
        return None

    def _stream(self, randomness: Randomness | None) -> Randomness:
        # A fresh key serves this call alone, so only a key that was passed is bound to the law.
        return Randomness.fresh() if randomness is None else Randomness.given(randomness).serving(self.law_name)

    @cached_property
    def law_name(self) -> str:
        """The name of the law: the mechanism, and every parameter that differs from its default.

        Streams depend on this text. It stays the same when a new parameter is added whose default changes nothing.
        """
        parameters: Any = dataclasses.fields(self)  # type: ignore[arg-type]
        settings = {field.name: getattr(self, field.name) for field in parameters}
        defaults = {field.name: field.default for field in parameters}
        changed = [f"{name}={_text(value)}" for name, value in settings.items() if value != defaults[name]]
        return f"{type(self).__name__}({', '.join(changed)})"

    @final
    def read(
        self,
        scores: Numbers,
        sensitivities: Numbers | None = None,
        offsets: Numbers | None = None,
        weights: Numbers | None = None,
    ) -> Batch:
        """Validate the arguments of a call and lay them out. Scores are not yet checked for NaN and infinities."""
        for name, numbers in (("offsets", offsets), ("weights", weights)):
            if numbers is not None and name not in self.takes:
                raise ValueError(f"{name} must not be given: {type(self).__name__} takes no {name}")
        if sensitivities is None and self.uses_sensitivities:
            raise ValueError(
                f"sensitivities must be given: {type(self).__name__} needs them; if each row is about one person, "
                "TopShare needs none"
            )
        known = 0.0 if sensitivities is None else sensitivities
        batch = read_batch(scores, known, offsets, weights=weights, finite=False)
        if weights is not None and self.count is not None:  # a candidate of weight 0 is in no list
            batch.check_weights(self.count)
        return batch


def require_mechanism(value: object, name: str = "mechanism", *, single: bool = False) -> None:
    """Refuse what is not a mechanism and, if a single pick is needed, lists of picks."""
    if not isinstance(value, Mechanism):
        made = f"the class {value.__name__}: write {value.__name__}(epsilon=...)" if isinstance(value, type) else ""
        raise ValueError(f"{name} must be a Mechanism such as dps.GEM(1.0), got {made or type(value).__name__}")
    if single and value.count is not None:
        raise ValueError(f"{name} must make single picks, got a {type(value).__name__}: pass its mechanism instead")


def tilt_label(tilt: float) -> str:
    """Return the text for a tilt in a label, empty if the tilt is 0."""
    return f", tilt {tilt:g}".replace("-", "−") if tilt else ""


def _text(value: object) -> str:
    if isinstance(value, Mechanism):
        return value.law_name
    return repr(value + 0.0 if isinstance(value, float) else value)  # + 0.0: −0.0 and 0.0 are the same tilt
