"""Exact compositions of many picks, to compare accountants with."""

import math

import numpy as np
from mpmath import mp
from scipy.special import gammaln

import dpselect as dps

DELTA = 1e-6
REPEATED = [(1, 1.0), (2, 1.0), (5, 2.0), (10, 0.1), (30, 0.5), (100, 0.1), (1000, 0.02)]


def pure(epsilon):
    """Return a guarantee of which nothing is known but ε."""
    return dps.RandomizedResponse(epsilon=epsilon).guarantee


def exponential(epsilon):
    return dps.NoisyMax(epsilon=epsilon).guarantee


def gumbel(epsilon):
    return dps.NoisyMax(epsilon=epsilon, noise="gumbel").guarantee


def hockey_stick(first, second, loss):
    return np.maximum(first - np.exp(loss) * second, 0).sum(axis=-1)


def repeated_bit(chances, times):
    """Return, for each of two coins, the law of the number of heads, which is a sufficient statistic."""
    heads = np.arange(times + 1)
    ways = gammaln(times + 1) - gammaln(heads + 1) - gammaln(times - heads + 1)
    return [np.exp(ways + heads * math.log(p) + (times - heads) * math.log1p(-p)) for p in chances]


def smallest_epsilon(first, second, delta):
    """Return the smallest ε at which δ holds in both directions, by bisection."""
    low, high = 0.0, 1e4
    for _ in range(80):
        middle = (low + high) / 2
        with np.errstate(divide="ignore", over="ignore"):
            kept = all(
                np.maximum(p - np.exp(np.minimum(middle + np.log(q), 700)), 0).sum() <= delta
                for p, q in ((first, second), (second, first))
            )
        low, high = (low, middle) if kept else (middle, high)
    return high


def exact_epsilon_of_randomized_response(epsilon, times, delta=DELTA):
    truth = 1 / (1 + math.exp(-epsilon))
    return smallest_epsilon(*repeated_bit((truth, 1 - truth), times), delta)


def exact_delta_of_randomized_response(epsilon, times, total):
    """Return δ of many bits at a total ε, as a sum of binomial terms with 40 digits."""
    with mp.workdps(40):
        loss, total = mp.mpf(epsilon), mp.mpf(total)
        truth = 1 / (1 + mp.exp(-loss))
        heads = (
            int(mp.floor((total / loss + times) / 2)) + 1
        )  # the fewest whose loss (2 · heads − times) ε exceeds ε
        if heads > times:
            return mp.mpf(0)
        term = mp.binomial(times, heads) * truth**heads * (1 - truth) ** (times - heads)
        found, excess = mp.mpf(0), mp.exp(total - (2 * heads - times) * loss)
        while heads <= times and term > found * mp.mpf(10) ** -30:
            found += term * (1 - excess)
            term *= mp.mpf(times - heads) / (heads + 1) * mp.exp(loss)
            excess *= mp.exp(-2 * loss)
            heads += 1
        return found


def exact_delta_of_bounded_range(width, times, total):
    """Return δ of many dominating pairs of bounded range at a total ε, in closed form.

    The loss of one has a density proportional to e^(x/2) on [−r, r] (docs/theory/accounting.md). So that of many is
    proportional to e^(x/2) times the density of a sum of uniform numbers, a polynomial on each of its pieces.
    """
    with mp.workdps(80 + 2 * times):
        width, total, half = mp.mpf(width), mp.mpf(total), mp.mpf(1) / 2
        room = times * width - total

        def integral(piece, rate):
            size = room - 2 * piece * width  # of y^(n−1) e^(rate · y), from where the piece begins
            found = size**times / times * mp.hyp1f1(times, times + 1, rate * size) if size > 0 else mp.mpf(0)
            return found * mp.exp(2 * rate * piece * width)

        parts = (
            (-1) ** piece
            * mp.binomial(times, piece)
            * (
                mp.exp(times * width / 2) * integral(piece, -half)
                - mp.exp(total - times * width / 2) * integral(piece, half)
            )
            for piece in range(times + 1)
        )
        return mp.fsum(parts) / mp.factorial(times - 1) / (4 * mp.sinh(width / 2)) ** times


def exact_epsilon_of_two_exponential_candidates(epsilon, times, lead, delta=DELTA):
    def chance(lead):
        return 0.5 * math.exp(lead) if lead < 0 else 1 - 0.5 * math.exp(-lead)

    return smallest_epsilon(*repeated_bit((chance(lead), chance(lead - epsilon)), times), delta)


def exact_epsilon_of_two_gumbel_candidates(epsilon, times, lead, delta=DELTA):
    chances = 1 / (1 + math.exp(-lead)), 1 / (1 + math.exp(epsilon - lead))
    return smallest_epsilon(*repeated_bit(chances, times), delta)


def laplace_curve(epsilon, loss):
    """Return δ of Laplace noise of scale 1/ε under a shift by 1."""
    within = -np.expm1((np.clip(loss, -epsilon, epsilon) - epsilon) / 2)
    return np.where(np.greater_equal(loss, -epsilon), within, -np.expm1(loss))[()]
