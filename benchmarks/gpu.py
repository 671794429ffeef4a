"""Top share on a CUDA device, against what torch offers there. ``make bench-gpu`` writes docs/gpu.md.

Times are medians of whole calls in milliseconds, from a tensor on the device to picks that are ready there.
"""

import argparse
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import dpselect as dps

PAGE = Path(__file__).parent.parent / "docs" / "gpu.md"
CANDIDATES = 200_000_000
"""Candidates in all; rows of 100 candidates are as many as those of 500."""
SIZES, BUDGETS = (100, 500, 5000), (1.0, 4.0, 8.0)
ROUNDS = 25


def milliseconds(call: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the median time of a call and of all that it starts on the device."""
    times = []
    for number in range(rounds + 3):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        if number >= 3:
            times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def exponential_mechanism(scores: torch.Tensor) -> torch.Tensor:
    """Add noise and take the largest: what one writes in torch. It is neither exact nor secure."""
    return (scores - torch.empty_like(scores).exponential_().log_()).argmax(1)


def top_share_in_torch(scores: torch.Tensor, epsilon: float) -> torch.Tensor:
    """Pick from all, or among those that a full selection finds to be the best. It is neither exact nor secure."""
    rows, size = scores.shape
    count = max(1, math.ceil(size / (1 + math.exp(epsilon / 2))))
    best = scores.topk(count, dim=1, sorted=False).indices
    chosen = best.gather(1, torch.randint(count, (rows, 1), device=scores.device))[:, 0]
    coin = torch.rand(rows, device=scores.device) < 1 / (1 + count / size * math.expm1(epsilon))
    return torch.where(coin, torch.randint(size, (rows,), device=scores.device), chosen)


def same_as_on_the_cpu(scores: torch.Tensor, weights: np.ndarray | None, epsilon: float) -> bool:
    """Compare the picks of the first rows with the CPU's."""
    public = {} if weights is None else {"weights": weights}
    few, seed = scores[:500], dps.Randomness.seeded(1)
    there = dps.TopShare(epsilon).select(few, **public, randomness=seed)
    return bool(
        (there.cpu().numpy() == dps.TopShare(epsilon).select(few.cpu().numpy(), **public, randomness=seed)).all()
    )


def measure(size: int, kind: torch.dtype, shrink: int) -> list[str]:
    """Return the lines of the table for rows of one size."""
    rows = min(400_000, CANDIDATES // size) // shrink
    scores = torch.randn(rows, size, device="cuda", dtype=kind)
    weights = np.random.default_rng(size).random(size) ** 3
    lines = []
    largest = milliseconds(lambda: scores.argmax(1))
    noise = milliseconds(lambda: exponential_mechanism(scores))
    for epsilon in BUDGETS:
        mechanism = dps.TopShare(epsilon)
        if not (same_as_on_the_cpu(scores, None, epsilon) and same_as_on_the_cpu(scores, weights, epsilon)):
            raise RuntimeError("the picks differ from the CPU's")
        plain = milliseconds(lambda: mechanism.select(scores))  # noqa: B023 - called at once
        fitted = milliseconds(lambda: mechanism.select(scores, weights=weights))  # noqa: B023
        whole = milliseconds(lambda: top_share_in_torch(scores, epsilon), 5)  # noqa: B023
        name = str(kind).removeprefix("torch.")
        lines.append(
            f"| {rows:,} × {size:,} | {name} | {epsilon:g} | **{plain:.2f}** | {fitted:.2f} | {largest:.2f} | "
            f"{plain / largest:.1f} | {noise:.2f} | {whole:.1f} |"
        )
        print(lines[-1], flush=True)
    return lines


def measure_own(shrink: int) -> tuple[float, float]:
    """Return the time for rows that have weights of their own, and the time to copy such scores."""
    rows = 400_000 // shrink
    scores = torch.randn(rows, 500, device="cuda")
    weights = torch.rand(rows, 500, device="cuda")
    own = milliseconds(lambda: dps.TopShare(4.0).select(scores, weights=weights), 1)
    return own, milliseconds(scores.cpu, 3)


def main() -> int:
    """Measure, print the page and write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--fast", action="store_true", help="run at a hundredth of the size and write nothing")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("there is no CUDA device here; docs/gpu.md is not changed")
        return 0
    shrink = 100 if options.fast else 1
    print("dpselect", dps.__version__, "torch", torch.__version__, flush=True)
    start = time.perf_counter()
    dps.TopShare(4.0).select(torch.randn(100, 100, device="cuda"))
    first = time.perf_counter() - start
    lines = [
        line for size in SIZES for kind in (torch.float32, torch.float64) for line in measure(size, kind, shrink)
    ]
    own, copy = measure_own(shrink)
    page = as_page("\n".join(lines), own, copy, first)
    print(page)
    if not options.fast:
        (Path(os.environ["OUT"]) / "gpu.md" if "OUT" in os.environ else PAGE).write_text(page, encoding="utf-8")
    return 0


def as_page(lines: str, own: float, copy: float, first: float) -> str:
    """Return the documentation page."""
    return f"""# Scores on a GPU

Recommenders score on a GPU. `TopShare` picks there, too: pass a CUDA tensor and get a tensor of picks on the same
device. No scores are copied to the host.

```text
scores = model(users)  # float32 or float64, on the device
picks = dps.TopShare(4.0).select(scores)  # int64, on the same device
```

Arrays of torch, CuPy and JAX work alike. This needs Numba for CUDA: `pip install 'dpselect[gpu]'`, or
`pip install '.[gpu]'` in a clone. A C compiler is not needed.

- **The picks are the CPU's, bit for bit**, for the same key and unit. The device computes the same ChaCha20
  streams, compares scores, and adds whole numbers. So it is exactly as private, and any machine can compute a
  release again.
- NaN and infinite scores are refused, as everywhere. So each call waits until its picks are ready.
- Work follows torch's or CuPy's current stream.
- Half precision is widened on the device.
- Other calls copy scores to the host in blocks, pick there, and copy the picks back: integer scores, weights that
  differ from row to row, calls with sensitivities, and all other mechanisms. The log (`dpselect`) says so once.

## How fast

From `make bench-gpu`, on one {torch.cuda.get_device_name()}, torch {torch.__version__}. Times are medians in
milliseconds for a whole call, until its picks are ready. About 0.2 ms of it are for starting a kernel from Python.
The scores are normal random numbers. *Fitted* weights are shared by all rows. *Noise* adds Gumbel noise in torch
and takes the largest; *selection* is top share by `torch.topk`. Neither of them is exact or secure.

| scores | type | ε | top share | fitted weights | argmax | top share / argmax | noise | selection |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
{lines}

400,000 × 500 float32 scores whose rows have weights of their own take {own:,.0f} ms at ε = 4, on {os.cpu_count()}
cores of the host. To copy such scores there takes {copy:,.0f} ms. The first call of a process takes {first:.1f} s,
since it compiles.
"""


if __name__ == "__main__":
    sys.exit(main())
