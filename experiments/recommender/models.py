"""EASE: a shallow autoencoder in closed form. It is built in, and replaces SANSA where that is not installed."""

from dataclasses import dataclass
from typing import Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from experiments.recommender.preprocessing import Likes

__all__ = ["Model", "SparseModel", "fit_ease"]

Scores: TypeAlias = NDArray[np.float32]

LARGEST_DENSE = 15_000
"""The most items for a dense inverse, which takes 24 bytes for each pair of items: 5 GB here."""


class Model(Protocol):
    """A linear model in two steps, so that the first step runs only once for each user."""

    @property
    def description(self) -> str:
        """The model and its settings, for readers."""
        ...

    def encode(self, inputs: Likes) -> sparse.csr_array:
        """Return the input of the second step for each user."""
        ...

    def decode(self, codes: sparse.csr_array, first: int, last: int) -> Scores:
        """Return the scores of items ``first`` to ``last`` − 1 for each user, as a dense array."""
        ...

    def decode_all(self, codes: sparse.csr_array) -> sparse.csr_array:
        """Return all non-zero scores."""
        ...


@final
@dataclass(frozen=True, kw_only=True)
class DenseModel:
    """Scores u ↦ uᵀB with a dense matrix B."""

    weights: Scores
    description: str

    def encode(self, inputs: Likes) -> sparse.csr_array:
        """Return the likes themselves."""
        return inputs

    def decode(self, codes: sparse.csr_array, first: int, last: int) -> Scores:
        """Return uᵀB for some columns of B."""
        return np.asarray(codes @ self.weights[:, first:last], dtype=np.float32)

    def decode_all(self, codes: sparse.csr_array) -> sparse.csr_array:
        """Return uᵀB."""
        return sparse.csr_array(codes @ self.weights)


@final
@dataclass(frozen=True, kw_only=True)
class SparseModel:
    """Scores u ↦ uᵀW₀W₁ with two sparse matrices."""

    encoder: sparse.csr_array
    decoder: sparse.csr_array
    by_item: sparse.csc_array
    """The decoder again, for blocks of items."""
    description: str

    def encode(self, inputs: Likes) -> sparse.csr_array:
        """Return uᵀW₀."""
        return sparse.csr_array(inputs @ self.encoder)

    def decode(self, codes: sparse.csr_array, first: int, last: int) -> Scores:
        """Return (uᵀW₀)W₁ for some columns of W₁."""
        return np.asarray((codes @ self.by_item[:, first:last].tocsr()).toarray(), dtype=np.float32)

    def decode_all(self, codes: sparse.csr_array) -> sparse.csr_array:
        """Return (uᵀW₀)W₁."""
        return sparse.csr_array(codes @ self.decoder)


def fit_ease(train: Likes, *, l2: float) -> DenseModel:
    r"""Fit EASE: the B that minimises ‖X − XB‖² + λ‖B‖² with a zero diagonal.

    With P = (XᵀX + λI)⁻¹,

        B_ij = −P_ij / P_jj  for i ≠ j,     B_jj = 0.

    Cost: one dense inverse, O(items³) time and 24 bytes for each pair of items.

    Args:
        train: Users × items.
        l2: The penalty λ.

    Example:
        >>> from experiments.recommender.preprocessing import like_matrix
        >>> pairs = like_matrix(np.int32([0, 0, 1, 1, 2]), np.int32([0, 1, 0, 1, 2]), (3, 3))
        >>> fit_ease(pairs, l2=1.0).weights.round(3)
        array([[0.   , 0.667, 0.   ],
               [0.667, 0.   , 0.   ],
               [0.   , 0.   , 0.   ]], dtype=float32)

    References:
        H. Steck, Embarrassingly shallow autoencoders for sparse data, 2019.
    """
    if not l2 > 0:
        raise ValueError(f"l2 must be > 0, got {l2}")
    items = train.shape[1]
    if items > LARGEST_DENSE:
        raise ValueError(
            f"EASE inverts a dense matrix and takes at most {LARGEST_DENSE:,} items, got {items:,}; use SANSA "
            "instead (make .venv/.sansa, or pip install 'dpselect[sansa]')"
        )
    gram = np.asarray((train.T @ train).toarray(), dtype=np.float64)
    gram[np.diag_indices(items)] += l2
    inverse = np.linalg.inv(gram)
    weights = inverse / -np.diag(inverse) + 0.0  # adding zero turns −0 into 0
    weights[np.diag_indices(items)] = 0.0
    return DenseModel(weights=weights.astype(np.float32), description=f"EASE, λ = {l2:g}")
