"""Select the next query to measure in a synthetic-data generator that adapts to the workload, as AIM does.

Such a generator keeps a model of the data. It repeats three steps: select the query that the model answers
worst, measure it with noise, and fit the model again. A query's score is its weight times its error. The model
comes from earlier releases, so replacing one person changes the error by at most 1 and the score by at most the
weight. The weights differ: a query that covers more of the workload has a larger weight. Noisy max adds the
noise for the largest weight to every query. That costs little if the weights are alike, and much if they are not.
"""

from itertools import combinations

import numpy as np

import dpselect as dps

EPSILON = 0.05
SIZES = (2, 3, 4, 5, 6, 8)


def main() -> None:
    """Print the selected query, and the expected error of each mechanism for two kinds of weights."""
    rng = np.random.default_rng(8)
    people = 1000
    columns = [rng.integers(0, size, people) for size in SIZES]
    # Two columns depend on others, so their queries are worth measuring.
    columns[3] = (columns[1] + (rng.random(people) < 0.8)) % SIZES[3]
    columns[5] = (columns[4] + 2 * rng.integers(0, 4, people)) % SIZES[5]
    model = [_measured(column, size, rng) for column, size in zip(columns, SIZES, strict=True)]  # earlier releases

    queries = [*combinations(range(len(SIZES)), 2), *combinations(range(len(SIZES)), 3)]
    errors = np.array([_error(query, columns, model) for query in queries])  # private
    workload = np.array(
        [sum(len(set(query) & set(other)) for other in queries) / len(queries) for query in queries]
    )
    cells = np.array([np.prod([SIZES[column] for column in query]) for query in queries])

    mechanism = dps.HeterogeneousNoisyMax(epsilon=EPSILON)
    pick = mechanism.select(workload * errors, workload)  # the weights are public, and they are the sensitivities
    print("measure next:", queries[pick], f"(ε = {mechanism.guarantee.epsilon:g})")

    rivals = {
        "exponential mechanism": dps.NoisyMax(epsilon=EPSILON, noise="gumbel"),
        "noisy max": dps.NoisyMax(epsilon=EPSILON),
        "heterogeneous noisy max": mechanism,
        "tilted noisy max": dps.NoisyMax(epsilon=EPSILON, tilt=-1.0),
        "GEM": dps.GEM(epsilon=EPSILON),
        "modified GEM": dps.ModifiedGEM(epsilon=EPSILON),
    }
    for title, weights in {"by the workload": workload, "the same for every cell": 10 / cells}.items():
        print(f"exact expected difference from the best score, weights {title}:")
        for label, rival in rivals.items():
            print(f"  {label}: {dps.expected_error(rival, weights * errors, weights, power=1):.1f}")


def _measured(column: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return the fractions of a column's values, as an earlier round measured them with noise."""
    noisy = np.maximum(1.0, np.bincount(column, minlength=size) + rng.laplace(scale=10.0, size=size))
    return noisy / noisy.sum()


def _error(query: tuple[int, ...], columns: list[np.ndarray], shares: list[np.ndarray]) -> float:
    """Return half the L1 distance between the true table and the model's table, whose columns are independent."""
    sizes = [SIZES[column] for column in query]
    truth = np.zeros(sizes)
    np.add.at(truth, tuple(columns[column] for column in query), 1.0)
    people = len(columns[0])
    model = np.full(sizes, float(people))
    for axis, column in enumerate(query):
        model *= shares[column].reshape([-1 if place == axis else 1 for place in range(len(query))])
    return float(np.abs(truth - model).sum() / 2)


if __name__ == "__main__":
    main()
