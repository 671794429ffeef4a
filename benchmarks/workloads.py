"""The workloads and their goals."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

import dpselect as dps
from benchmarks import rivals
from benchmarks.timing import Contestant, race

FloatArray: TypeAlias = NDArray[np.float64]

ROWS, CANDIDATES = 50_000, 500
SAMPLE = 200
"""The number of rows for slow competitors; their times for all rows are extrapolated."""


class Result(NamedTuple):
    """One line of the table."""

    workload: str
    goal: str
    measured: str
    reached: bool


def at_most(workload: str, limit: float, ours: float, other: float, unit: str) -> Result:
    """Judge the goal "at most ``limit`` times the other's time"."""
    ratio = ours / other
    return Result(workload, f"≤ {limit:g} × {unit}", f"{ratio:.2f} ×", ratio <= limit)


def faster(workload: str, factor: float, ours: float, other: float, unit: str) -> Result:
    """Judge the goal "at least ``factor`` times as fast as the other"."""
    ratio = other / ours
    return Result(workload, f"≥ {factor:g} × as fast as {unit}", f"{ratio:.1f} ×", ratio >= factor)


def noisy_max(rounds: int) -> Iterator[Result]:
    """Noisy max over a large batch, at four budgets."""
    generator = np.random.default_rng(1)
    scores = generator.normal(size=(ROWS, CANDIDATES))
    sample, share = scores[:SAMPLE], SAMPLE / ROWS
    for epsilon, limit in ((0.1, 3), (1.0, 3), (16.0, 6), (64.0, 6)):
        mechanism = dps.NoisyMax(epsilon=epsilon)
        contestants = {
            "ours": Contestant(lambda m=mechanism: m.select(scores, 1.0)),
            "argmax": Contestant(lambda: scores.argmax(axis=1)),
        }
        if epsilon <= 1:
            opendp = rivals.opendp_noisy_max(1.0, epsilon)
            diffprivlib = rivals.diffprivlib_permute_and_flip(1.0, epsilon)
            contestants |= {
                "numpy": Contestant(lambda e=epsilon: rivals.numpy_noisy_max(scores, 1.0, e, generator)),
                "opendp": Contestant(lambda f=opendp: f(sample), share),
                "diffprivlib": Contestant(lambda f=diffprivlib: f(sample), share),
            }
        times = race(contestants, rounds)
        name = f"NoisyMax, {ROWS:,} × {CANDIDATES}, ε = {epsilon:g}"
        yield at_most(name, limit, times["ours"], times["argmax"], "`scores.argmax(axis=1)`")
        if epsilon <= 1:
            yield faster(name, 500, times["ours"], times["opendp"], "opendp")
            yield faster(name, 700, times["ours"], times["diffprivlib"], "diffprivlib")
            yield faster(name, 3, times["ours"], times["numpy"], "chunked NumPy")


def heterogeneous(rounds: int) -> Iterator[Result]:
    """The default mechanism against noisy max: picks at four budgets, laws, equal sensitivities, one long row."""
    generator = np.random.default_rng(8)
    scores = generator.normal(size=(ROWS, CANDIDATES))
    own = generator.uniform(0.1, 1.0, scores.shape)
    forms = {"shared": (own[0], 2.5), "own": (own, 8.0)}
    for form, (sensitivities, limit) in forms.items():
        for epsilon in (0.1, 1.0, 16.0, 64.0):
            times = _both(epsilon, "select", scores, sensitivities, rounds)
            name = f"HeterogeneousNoisyMax, {ROWS:,} × {CANDIDATES}, {form} sensitivities, ε = {epsilon:g}"
            yield at_most(name, limit, times["ours"], times["noisy max"], "NoisyMax")
    times = _both(1.0, "select", scores, np.ones(CANDIDATES), rounds)
    name = f"HeterogeneousNoisyMax, {ROWS:,} × {CANDIDATES}, equal sensitivities, ε = 1"
    yield at_most(name, 1.2, times["ours"], times["noisy max"], "NoisyMax")
    for epsilon in (1.0, 16.0):
        times = _both(epsilon, "pmf", scores[:2000], own[:2000], rounds)
        name = f"Probabilities of HeterogeneousNoisyMax, 2,000 × {CANDIDATES}, ε = {epsilon:g}"
        yield at_most(name, 5, times["ours"], times["noisy max"], "NoisyMax")
    long, widths = generator.normal(size=10**6), generator.uniform(0.1, 1.0, 10**6)
    times = _both(1.0, "select", long, widths, rounds)
    yield at_most("HeterogeneousNoisyMax, 1 × 1,000,000, ε = 1", 4, times["ours"], times["noisy max"], "NoisyMax")


def _both(
    epsilon: float, method: str, scores: FloatArray, sensitivities: FloatArray, rounds: int
) -> dict[str, float]:
    calls = {
        "ours": getattr(dps.HeterogeneousNoisyMax(epsilon=epsilon), method),
        "noisy max": getattr(dps.NoisyMax(epsilon=epsilon), method),
    }
    return race({name: Contestant(lambda c=call: c(scores, sensitivities)) for name, call in calls.items()}, rounds)


def top_share(rounds: int) -> Iterator[Result]:
    """Top share against argmax, with equal and with fitted weights, and the fit itself."""
    generator = np.random.default_rng(10)
    scores, weights = generator.normal(size=(ROWS, CANDIDATES)), generator.random(CANDIDATES) ** 4
    for epsilon, limit in ((1.0, 2.5), (4.0, 2.5), (8.0, 3.0)):
        mechanism = dps.TopShare(epsilon)
        contestants = {
            "equal": Contestant(lambda m=mechanism: m.select(scores)),
            "weighted": Contestant(lambda m=mechanism: m.select(scores, weights=weights)),
            "argmax": Contestant(lambda: scores.argmax(axis=1)),
        }
        times = race(contestants, rounds)
        name = f"TopShare, {ROWS:,} × {CANDIDATES}, ε = {epsilon:g}"
        yield at_most(name, limit, times["equal"], times["argmax"], "`scores.argmax(axis=1)`")
        told = f"{times['weighted'] / times['argmax']:.1f} × argmax"
        yield Result(f"{name}, unequal weights", "none", told, reached=True)
    public = scores[:1000] + generator.normal(size=CANDIDATES)
    for epsilon in (1.0, 4.0, 8.0):
        contestants = {"fit": Contestant(lambda e=epsilon: dps.advice.fit_top_share(public, epsilon=e))}
        seconds = race(contestants, 1)["fit"]
        name = f"fit_top_share, 1,000 × {CANDIDATES}, ε = {epsilon:g}"
        yield Result(name, "≤ 3 s", f"{seconds:.1f} s", reached=seconds <= 3)


def top_k(rounds: int) -> Iterator[Result]:
    """Ten of each row against one pick, for equal, shared and own sensitivities, and beside OpenDP."""
    generator = np.random.default_rng(9)
    count, few = 10, 20
    scores = generator.normal(size=(ROWS, CANDIDATES))
    own = generator.uniform(0.1, 1.0, scores.shape)
    mechanisms = {
        "NoisyMax": dps.NoisyMax(epsilon=1.0),
        "Gumbel noise": dps.NoisyMax(epsilon=1.0, noise="gumbel"),
        "GEM": dps.GEM(epsilon=1.0),
        "HeterogeneousNoisyMax": dps.HeterogeneousNoisyMax(epsilon=1.0),
    }
    for label, mechanism in mechanisms.items():
        for form, sensitivities in {"equal": 1.0, "shared": own[0], "own": own}.items():
            top = dps.TopK(mechanism, count)
            contestants = {
                "ten": Contestant(lambda t=top, s=sensitivities: t.select(scores, s)),
                "one": Contestant(lambda m=mechanism, s=sensitivities: m.select(scores, s)),
            }
            compared = label == "NoisyMax" and form == "equal"
            if compared:
                opendp = rivals.opendp_top_k(1.0, 1.0, count)
                contestants["opendp"] = Contestant(lambda f=opendp: f(scores[:few]), few / ROWS)
            times = race(contestants, max(2, rounds // 3))
            name = f"TopK, ten of {ROWS:,} × {CANDIDATES}, {label}, {form} sensitivities, ε = 1 a pick"
            yield at_most(name, 12, times["ten"], times["one"], "one pick")
            if compared:
                ratio, micro = times["opendp"] / times["ten"], times["opendp"] / ROWS * 1e6
                told = f"{ratio:,.0f} × as fast as opendp, which takes {micro:,.0f} µs a row"
                yield Result(name, "none", told, reached=True)


def memory(rounds: int) -> Iterator[Result]:  # noqa: ARG001 - measured once
    """Memory in addition to the inputs for one row of many candidates, in a fresh process."""
    size = 10**7
    for name, arguments in (("NoisyMax", "1.0"), ("GEM", "sensitivities")):
        program = f"""
import pathlib, numpy as np, dpselect as dps
generator = np.random.default_rng(0)
mechanism = dps.{name}(epsilon=1.0)
def peak(size):
    scores, sensitivities = generator.normal(size=size), generator.uniform(0.5, 2.0, size=size)
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # reset the high-water mark
    before = high_water()
    mechanism.select(scores, {arguments})
    return high_water() - before
def high_water():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
peak(20_000)  # compiles; a smaller call would run in plain Python
print(peak({size}) * 1024 / (8 * {size}))
"""
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        doubles = float(run.stdout)
        goal = "below 2 × k doubles in addition to the inputs"
        yield Result(f"memory, {name}, one row, k = 10⁷", goal, f"{doubles:.2f} × k doubles", doubles < 2)


def gem(rounds: int) -> Iterator[Result]:
    """GEM and modified GEM over one batch, with each row's own sensitivities or shared ones."""
    generator = np.random.default_rng(2)
    scores = generator.normal(size=(ROWS, CANDIDATES))
    own = generator.uniform(0.5, 2.0, size=scores.shape)
    share = SAMPLE / ROWS
    for record in (dps.MECHANISMS["gem"], dps.MECHANISMS["mgem"]):
        mechanism = record(epsilon=1.0)
        name = f"{record.label}, {ROWS:,} × {CANDIDATES}, ε = 1"
        times = race(
            {
                "own": Contestant(lambda m=mechanism: m.select(scores, own)),
                "shared": Contestant(lambda m=mechanism: m.select(scores, own[0])),
                "noisy max": Contestant(lambda: dps.NoisyMax(epsilon=1.0).select(scores, 1.0)),
                "numpy": Contestant(lambda: rivals.numpy_gem(scores[:SAMPLE], own[:SAMPLE], 1.0, generator), share),
            },
            rounds,
        )
        yield at_most(f"{name}, own sensitivities", 6, times["own"], times["noisy max"], "NoisyMax")
        yield faster(f"{name}, own sensitivities", 100, times["own"], times["numpy"], "the k × k NumPy form")
        yield at_most(f"{name}, shared sensitivities", 4, times["shared"], times["noisy max"], "NoisyMax")


def one_large_selection(rounds: int) -> Iterator[Result]:
    """One row of a million candidates."""
    generator = np.random.default_rng(3)
    size = 10**6
    scores = generator.normal(size=size)
    sensitivities = generator.uniform(0.5, 2.0, size=size)
    times = race(
        {
            "noisy max": Contestant(lambda: dps.NoisyMax(epsilon=1.0).select(scores, 1.0)),
            "numpy": Contestant(lambda: np.argmax(scores + generator.exponential(2.0, size=size))),
            "gem": Contestant(lambda: dps.GEM(epsilon=1.0).select(scores, sensitivities)),
            "argsort": Contestant(lambda: np.argsort(sensitivities)),
        },
        rounds,
    )
    yield at_most(
        "NoisyMax, one row, k = 10⁶", 0.5, times["noisy max"], times["numpy"], "NumPy's argmax(q + noise)"
    )
    yield at_most("GEM, one row, k = 10⁶", 3, times["gem"], times["argsort"], "`np.argsort(sensitivities)`")
    for mechanism in (dps.NoisyMax(epsilon=1.0), dps.GEM(epsilon=1.0)):
        seconds = race({"pmf": Contestant(lambda m=mechanism: m.pmf(scores, sensitivities))}, rounds)["pmf"]
        name = type(mechanism).__name__
        yield Result(f"exact pmf, {name}, one row, k = 10⁶", "≤ 2 s", f"{seconds:.2f} s", seconds <= 2)


def one_small_selection(rounds: int) -> Iterator[Result]:
    """One row of a hundred candidates: the overhead of a call."""
    scores = np.random.default_rng(4).normal(size=100)
    mechanism = dps.NoisyMax(epsilon=1.0)
    repeats = 1000

    def calls() -> None:
        for _ in range(repeats):
            mechanism.select(scores, 1.0)

    microseconds = race({"ours": Contestant(calls)}, rounds)["ours"] / repeats * 1e6
    yield Result("NoisyMax, one row, k = 100", "≤ 25 µs a call", f"{microseconds:.0f} µs", microseconds <= 25)


def random_stopping(rounds: int) -> Iterator[Result]:
    """Random stopping over a large batch."""
    generator = np.random.default_rng(5)
    scores = generator.normal(size=(ROWS, CANDIDATES))
    sensitivities = generator.uniform(0.5, 2.0, size=CANDIDATES)
    sample = 2000
    times = race(
        {
            "ours": Contestant(lambda: dps.RandomStopping(epsilon=1.0, gamma=0.008).select(scores, sensitivities)),
            "numpy": Contestant(
                lambda: rivals.numpy_random_stopping(scores[:sample], sensitivities, 1.0, 0.008, generator),
                sample / ROWS,
            ),
        },
        rounds,
    )
    name = f"RandomStopping, {ROWS:,} × {CANDIDATES}, γ = 0.008"
    yield faster(name, 40, times["ours"], times["numpy"], "a NumPy loop over users")


def exact_probabilities(rounds: int) -> Iterator[Result]:
    """The exact pmf of a large batch, relative to picking from it."""
    generator = np.random.default_rng(6)
    scores = generator.normal(size=(ROWS, CANDIDATES))
    sensitivities = generator.uniform(0.5, 2.0, size=CANDIDATES)
    for mechanism in (dps.NoisyMax(epsilon=1.0), dps.GEM(epsilon=1.0)):
        times = race(
            {
                "pmf": Contestant(lambda m=mechanism: m.pmf(scores, sensitivities)),
                "select": Contestant(lambda m=mechanism: m.select(scores, sensitivities)),
            },
            max(2, rounds // 3),
        )
        name = f"exact pmf, {type(mechanism).__name__}, {ROWS:,} × {CANDIDATES}"
        yield at_most(name, 100, times["pmf"], times["select"], "`select`")


def correlation(rounds: int) -> Iterator[Result]:
    """Spearman's correlation of many users, with each user's own sensitivities or shared ones."""
    generator = np.random.default_rng(8)
    users = 100_000
    scores = generator.normal(size=(users, CANDIDATES))
    own = generator.uniform(0.5, 2.0, size=scores.shape)
    share = SAMPLE / users
    times = race(
        {
            "own": Contestant(lambda: dps.correlation.spearman(scores, own)),
            "shared": Contestant(lambda: dps.correlation.spearman(scores, own[0])),
            "scipy": Contestant(lambda: rivals.scipy_spearman(scores[:SAMPLE], own[:SAMPLE]), share),
        },
        rounds,
    )
    name = f"Spearman's correlation, {users:,} × {CANDIDATES}"
    for kind in ("own", "shared"):
        yield faster(f"{name}, {kind} sensitivities", 20, times[kind], times["scipy"], "a loop over SciPy's")


WORKLOADS: tuple[Callable[[int], Iterator[Result]], ...] = (
    heterogeneous,
    noisy_max,
    top_share,
    top_k,
    gem,
    one_large_selection,
    one_small_selection,
    random_stopping,
    exact_probabilities,
    correlation,
    memory,
)
