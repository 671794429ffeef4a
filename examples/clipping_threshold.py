"""Choose a hyper-parameter: where to clip values before they are summed privately.

A low threshold loses what lies above it, a high one needs more noise. The noise is public; the loss is not:

    score(T) = −Σ_i max(0, x_i − T)  −  T · n_noise

Values lie in [0, B], so one person moves the private sum by at most B − T: high thresholds are *less* sensitive.
The second term is public and goes in as an offset, at no cost.
"""

import numpy as np

import dpselect as dps

EPSILON = 0.5
LARGEST = 1000.0


def main() -> None:
    """Print the threshold picked, and how likely each was."""
    incomes = np.minimum(np.random.default_rng(11).lognormal(3.5, 0.8, size=3000), LARGEST)  # private
    thresholds = np.array([20.0, 50, 100, 200, 400, 700, 1000])
    noise_per_unit = 25.0  # public: what a unit of T costs in noise of the sum

    lost = -np.maximum(0, incomes[:, np.newaxis] - thresholds).sum(axis=0)
    sensitivities = LARGEST - thresholds
    offsets = -noise_per_unit * thresholds

    mechanism = dps.NoisyMax(epsilon=EPSILON)
    pick = mechanism.select(lost, sensitivities, offsets=offsets)
    print(f"clip at {thresholds[pick]:g} (ε = {mechanism.guarantee.epsilon:g})")

    chances = mechanism.pmf(lost, sensitivities, offsets=offsets)  # not private; the data are made up
    best = thresholds[np.argmax(lost + offsets)]
    shown = ", ".join(f"{threshold:g}: {chance:.3f}" for threshold, chance in zip(thresholds, chances, strict=True))
    print(f"the best threshold is {best:g}; the chance of each: {shown}")


if __name__ == "__main__":
    main()
