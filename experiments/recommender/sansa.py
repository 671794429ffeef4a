"""SANSA from its published package: EASE with a sparse approximate inverse. It needs the extra ``sansa``."""

import importlib.util
import logging
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from experiments.recommender.models import SparseModel
from experiments.recommender.preprocessing import Likes

__all__ = ["SANSA_MISSING", "fit_sansa", "sansa_is_installed"]

SANSA_MISSING = (
    "SANSA is not installed: it needs the system package libsuitesparse-dev (Debian, Ubuntu) and the extra "
    "dpselect[sansa]; `make .venv/.sansa` installs both"
)


def sansa_is_installed() -> bool:
    """Return whether the package is installed, without the seconds that importing it takes."""
    return all(importlib.util.find_spec(name) is not None for name in ("sansa", "sksparse"))


def fit_sansa(
    train: Likes, *, l2: float, density: float, factorisation: Literal["cholmod", "icf"], scans: int = 1
) -> SparseModel:
    """Fit SANSA: uᵀW₀W₁ ≈ −uᵀP/diag(P), with P = (XᵀX + λI)⁻¹ and sparse W₀, W₁ of the given density.

    The package leaves −1 on the diagonal of W₀W₁, where EASE has 0, so a user's seen items score one less. This
    makes no difference here: they are never candidates, and the percentiles leave them out.

    Args:
        train: Users × items.
        l2: The penalty λ.
        density: The share of non-zero entries of W₀ and W₁.
        factorisation: ``"cholmod"`` factorises exactly and then drops small entries; ``"icf"`` is an
            incomplete factorisation, for many items. It scales the items first, so its scores differ from EASE's at
            every density.
        scans: The number of improvements of the approximate inverse.

    References:
        M. Spišák et al., Scalable approximate nonsymmetric autoencoder for collaborative filtering, 2023.
    """
    if not sansa_is_installed():
        raise ModuleNotFoundError(SANSA_MISSING)
    # On import the package makes the root logger print everything, unless it already has a handler.
    root = logging.getLogger()
    silence = logging.NullHandler()
    root.addHandler(silence)
    try:
        import sansa  # noqa: PLC0415 - slow, and an extra
    finally:
        root.removeHandler(silence)
    logging.getLogger("sansa").setLevel(logging.ERROR)
    factorizer = {"cholmod": sansa.CHOLMODGramianFactorizerConfig, "icf": sansa.ICFGramianFactorizerConfig}
    model = sansa.SANSA(
        sansa.SANSAConfig(
            l2=l2,
            weight_matrix_density=density,
            gramian_factorizer_config=factorizer[factorisation](),
            lower_triangle_inverter_config=sansa.UMRUnitLowerTriangleInverterConfig(scans=scans, finetune_steps=10),
        )
    )
    # Incomplete factorisation divides by the norms of items, which are 0 without likes. Leave such items out; they
    # score 0.
    liked = np.unique(train.indices) if factorisation == "icf" else np.arange(train.shape[1])
    model.fit(sparse.csr_matrix(train[:, liked]))
    encoder, decoder = (_spread(weights, liked, train.shape[1]) for weights in model.weights)
    return SparseModel(
        encoder=encoder,
        decoder=decoder,
        by_item=sparse.csc_array(decoder),
        description=f"SANSA, density {density:.3g}, λ = {l2:g}, {factorisation.upper()}, scans: {scans}",
    )


def _spread(weights: sparse.csr_matrix, places: NDArray[np.integer], size: int) -> sparse.csr_array:
    """Return a matrix of all items from one of some items; the others have zeros."""
    entries = sparse.coo_array(weights, dtype=np.float32)
    rows, columns = entries.coords
    return sparse.csr_array((entries.data, (places[rows], places[columns])), shape=(size, size))
