"""The most accurate private mechanism for two or three candidates on a grid of scores, by linear programming."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from experiments.arrays import FloatArray, IndexArray

__all__ = ["Lattice", "least_error"]


@dataclass(frozen=True)
class Lattice:
    """Candidates with scores 0, h, 2h, …, all combinations of them equally likely.

    Example:
        >>> Lattice((1.0, 2.0), points=2, step=0.5).scores.tolist()
        [[0.0, 0.0], [0.0, 0.5], [0.5, 0.0], [0.5, 0.5]]
    """

    sensitivities: tuple[float, ...]
    points: int
    """The number of different scores."""
    step: float
    """The distance h between scores."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of scores of each candidate."""
        return (self.points,) * len(self.sensitivities)

    @property
    def places(self) -> IndexArray:
        """A row for each state: the scores in units of the step."""
        return np.indices(self.shape).reshape(len(self.shape), -1).T

    @property
    def scores(self) -> FloatArray:
        """A row for each state."""
        return np.asarray(self.places * self.step, dtype=np.float64)

    @property
    def losses(self) -> FloatArray:
        """The squared distance of each score from the best of its state."""
        return np.asarray((self.scores.max(axis=1, keepdims=True) - self.scores) ** 2)

    def moves(self) -> Iterator[tuple[float, IndexArray, IndexArray]]:
        """Yield the moves to neighbours, each as its distance, the states it starts from and those it leads to.

        The distance is the largest |q_a − q'_a|/Δ_a, which is at most 1 between neighbours.
        """
        states = np.arange(self.points ** len(self.shape)).reshape(self.shape)
        # A step may be a rounded fraction of a sensitivity.
        reaches = [int(delta / self.step + 1e-9) for delta in self.sensitivities]
        for move in product(*(range(-reach, reach + 1) for reach in reaches)):
            if any(move):
                distance = max(abs(m) * self.step / d for m, d in zip(move, self.sensitivities, strict=True) if m)
                before = tuple(slice(max(0, -m), self.points - max(0, m)) for m in move)
                after = tuple(slice(max(0, m), self.points - max(0, -m)) for m in move)
                yield distance, states[before].ravel(), states[after].ravel()

    def variables(self) -> IndexArray:
        """Number the probabilities Pr[a | q], a row for each state.

        Probabilities that differ by an exchange of equally sensitive candidates share a number. Nothing is lost:
        the mean of an optimal mechanism over all such exchanges is private and as accurate.
        """
        numbers = np.arange(self.losses.size).reshape(self.losses.shape)
        first = numbers.copy()
        for order in map(list, permutations(range(len(self.shape)))):
            if all(self.sensitivities[a] == self.sensitivities[b] for a, b in enumerate(order)):
                exchanged = np.ravel_multi_index(tuple(self.places[:, order].T), self.shape)
                first[:, order] = np.minimum(first[:, order], numbers[exchanged])
        return np.unique(first, return_inverse=True)[1].reshape(first.shape)


def least_error(lattice: Lattice, epsilon: float, *, proportional: bool = False) -> tuple[float, FloatArray]:
    """Return the least mean squared error of all ε-DP mechanisms, and probabilities that attain it.

    Args:
        lattice: The candidates and their possible scores.
        epsilon: The privacy budget.
        proportional: Whether to ask for more than ε-DP: scores at distance s ≤ 1 lose at most s·ε. Noisy max and
            its relatives have this property.
    """
    variables = lattice.variables()
    count = int(variables.max()) + 1
    costs = np.bincount(variables.ravel(), lattice.losses.ravel() / len(variables))
    pairs, factors = [], []
    for distance, before, after in lattice.moves():
        pairs.append(np.stack([variables[before].ravel(), variables[after].ravel()], axis=1))
        factors.append(np.full(len(pairs[-1]), np.exp(epsilon * distance if proportional else epsilon)))
    rows, places = np.unique(np.concatenate(pairs), axis=0, return_index=True)
    bounded = _matrix(rows[:, :1], np.ones((len(rows), 1)), count)
    bounding = _matrix(rows[:, 1:], np.concatenate(factors)[places, np.newaxis], count)
    states = np.unique(np.sort(variables, axis=1), axis=0)
    # The type stubs of linprog know only dense matrices.
    sparse_parts: dict[str, Any] = {
        "A_ub": bounded - bounding,
        "A_eq": _matrix(states, np.ones(states.shape), count),
    }
    found: Any = linprog(
        costs, **sparse_parts, b_ub=np.zeros(len(rows)), b_eq=np.ones(len(states)), method="highs-ds"
    )
    if not found.success:
        raise RuntimeError(f"the linear program was not solved: {found.message}")
    return float(found.fun), np.asarray(found.x)[variables]


def _matrix(columns: IndexArray, values: FloatArray, width: int) -> sparse.csr_array:
    """Return a sparse matrix with these values in these columns of each row. Values of one place are added."""
    rows = np.repeat(np.arange(len(columns)), columns.shape[1])
    return sparse.csr_array((values.ravel(), (rows, columns.ravel())), shape=(len(columns), width))
