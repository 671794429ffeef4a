"""The picture of the documentation's first page: ``python -m experiments.front_page`` draws it into docs/images.

It is SVG that takes its colours from the page around it, so that it fits light and dark pages.
"""

from pathlib import Path

import dpselect as dps
from experiments.files import replacing
from experiments.guide import IMAGES, RATERS, SCORES, STARS

__all__ = ["EPSILON", "PICTURE", "draw", "main"]

PICTURE = IMAGES / "problem.svg"
EPSILON = 0.5
LEFT, STAR, TOP, ROW = 78, 78, 98, 44
"""The place of the axis and the length of a star; the place of the first row and the height of a row."""
LOWEST = 2.5
"""The number of stars where the axis begins."""

HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 460 {height}" role="img" class="problem"
  aria-labelledby="problem-title problem-text">
<title id="problem-title">The noise of two mechanisms around five private scores</title>
<desc id="problem-text">{text}</desc>
<style>
:root, [data-md-color-scheme="default"] {{ --ink: #222; --page: #fff; --ours: {ours}; --theirs: #777; }}
[data-md-color-scheme="slate"] {{ --ink: #ddd; --page: #1e2129; --ours: #ff5cb8; --theirs: #999; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #ddd; --page: #1e2129; --ours: #ff5cb8; --theirs: #999; }} }}
.problem text {{ font: 14px system-ui, sans-serif; fill: var(--ink); }}
.problem .small {{ font-size: 12px; opacity: 0.8; }}
.problem .best {{ font-weight: 700; }}
.problem .score, .problem .axis {{ fill: var(--ink); }}
.problem .axis {{ opacity: 0.3; }}
.problem .score {{ stroke: var(--page); stroke-width: 1.5; }}
.problem .ours {{ fill: var(--ours); }}
.problem .theirs {{ fill: var(--theirs); }}
</style>
"""


def draw() -> str:
    """Return the picture: for each drink its score, the noise of noisy max and of the default, and its chances."""
    widths = {drink: STARS / people for drink, people in RATERS.items()}
    chances = [
        mechanism.pmf(SCORES, widths) for mechanism in (dps.NoisyMax(EPSILON), dps.HeterogeneousNoisyMax(EPSILON))
    ]
    best = max(SCORES, key=SCORES.__getitem__)
    theirs, ours = (f"{100 * chance[best]:.0f} %" for chance in chances)
    text = (
        f"Five drinks with mean ratings from few or many people. Noisy max adds the same noise to all of them and "
        f"picks the best, {best}, with probability {theirs}. Heterogeneous noisy max adds less noise to each and "
        f"picks it with probability {ours}. Both are {EPSILON:g}-differentially private."
    )
    height = TOP + ROW * len(SCORES) + 6
    parts = [
        HEAD.format(height=height, text=text, ours=dps.MECHANISMS["heterogeneous-rnm"].color),
        _axis(height - 26),
        _legend(),
    ]
    parts += [
        _row(number, drink, widths, [chance[drink] for chance in chances], is_best=drink == best)
        for number, drink in enumerate(SCORES)
    ]
    return "".join(parts) + "</svg>\n"


def _legend() -> str:
    return (
        '<circle class="score" cx="14" cy="13" r="5"/><text x="28" y="18">private score</text>\n'
        '<rect class="theirs" x="4" y="28" width="20" height="9" rx="2"/>'
        '<text x="28" y="38">noise of noisy max</text>\n'
        '<rect class="ours" x="4" y="48" width="20" height="9" rx="2"/>'
        '<text x="28" y="58">noise of heterogeneous noisy max</text>\n'
        f'<text x="456" y="18" text-anchor="end">chance at ε = {EPSILON:g}</text>\n'
        f'<rect class="theirs" x="368" y="{TOP - 42}" width="20" height="9" rx="2"/>'
        f'<rect class="ours" x="434" y="{TOP - 42}" width="20" height="9" rx="2"/>\n'
    )


def _row(number: int, drink: str, widths: dict[str, float], chances: list[float], *, is_best: bool) -> str:
    """Return a drink's name, its score, the mean of both noises from there on, and both chances of being picked."""
    middle = TOP + ROW * number
    start = LEFT + (SCORES[drink] - LOWEST) * STAR
    rival = max(width for other, width in widths.items() if other != drink)
    noises = (2 * max(widths.values()) / EPSILON, (widths[drink] + rival) / EPSILON)
    kind = ' class="best"' if is_best else ""
    lines = [f'<text x="4" y="{middle}"{kind}>{drink}</text>\n']
    lines.append(f'<text class="small" x="4" y="{middle + 16}">{RATERS[drink]} people</text>\n')
    for name, noise, chance, shift, place in zip(
        ("theirs", "ours"), noises, chances, (-10, 2), (390, 456), strict=True
    ):
        box = f'x="{start:.0f}" y="{middle + shift}" width="{noise * STAR:.0f}" height="9"'
        lines.append(f'<rect class="{name}" {box} rx="2"/>')
        lines.append(f'<text x="{place}" y="{middle + 5}" text-anchor="end"{kind}>{100 * chance:.0f} %</text>\n')
    lines.append(f'<circle class="score" cx="{start:.0f}" cy="{middle}" r="5"/>\n')
    return "".join(lines)


def _axis(bottom: int) -> str:
    lines = []
    for stars in range(3, 6):
        place = LEFT + (stars - LOWEST) * STAR
        lines.append(
            f'<rect class="axis" x="{place:.0f}" y="{TOP - 20}" width="0.5" height="{bottom - TOP + 20}"/>'
        )
        lines.append(
            f'<text class="small" x="{place:.0f}" y="{bottom + 18}" text-anchor="middle">{stars} ★</text>\n'
        )
    return "".join(lines)


def main(path: Path = PICTURE) -> None:
    """Draw the picture."""
    with replacing(path) as draft:
        draft.write_text(draw(), "utf-8")


if __name__ == "__main__":
    main()
