"""Choose a hyper-parameter: the threshold at which values are clipped before a private sum.

A low threshold T loses everything above it. A high threshold needs more noise. The loss is private, the noise
is public:

    score(T) = −Σ_i max(0, x_i − T)  −  T · n_noise

Values lie in [0, B], so one person changes the private sum by at most B − T: high thresholds are *less*
sensitive. The second term is public, so it is passed as an offset at no cost.
"""

import numpy as np

import dpselect as dps

EPSILON = 0.5
LARGEST = 1000.0


def main() -> None:
    """Print the selected threshold and the probability of each threshold."""
    incomes = np.minimum(np.random.default_rng(11).lognormal(3.5, 0.8, size=3000), LARGEST)  # private
    thresholds = np.array([20.0, 50, 100, 200, 400, 700, 1000])
    noise_per_unit = 25.0  # public: how much noise in the sum one unit of T costs

    lost = -np.maximum(0, incomes[:, np.newaxis] - thresholds).sum(axis=0)
    sensitivities = LARGEST - thresholds
    offsets = -noise_per_unit * thresholds

    mechanism = dps.NoisyMax(epsilon=EPSILON)
    pick = mechanism.select(lost, sensitivities, offsets=offsets)
    print(f"clip at {thresholds[pick]:g} (ε = {mechanism.guarantee.epsilon:g})")

    probabilities = mechanism.pmf(lost, sensitivities, offsets=offsets)  # not private; the data are made up
    best = thresholds[np.argmax(lost + offsets)]
    shown = ", ".join(f"{threshold:g}: {p:.3f}" for threshold, p in zip(thresholds, probabilities, strict=True))
    print(f"the best threshold is {best:g}; probability of each threshold: {shown}")


if __name__ == "__main__":
    main()
