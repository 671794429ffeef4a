"""What all figures share: colours, numbers on axes and maps of ratios."""

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import dpselect as dps
from dpselect.registry import UNSAFE
from experiments import drawing
from experiments.mechanisms import STYLES

ROOT = Path(__file__).parents[2] / "experiments"
MODULES = [
    *(path for path in ROOT.glob("*.py") if path.name != "mechanisms.py"),
    *(path for folder in ("synthetic", "default", "tuning") for path in (ROOT / folder).glob("*.py")),
]
MECHANISMS = {record.color for record in (*dps.MECHANISMS.values(), *UNSAFE.values())} | {
    style.color for style in STYLES.values()
}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_colour_of_a_mechanism_is_written_nowhere_but_in_its_record(path):
    text = path.read_text(encoding="utf-8")
    assert not {found.lower() for found in re.findall(r"#[0-9a-fA-F]{6}", text)} & MECHANISMS
    # Neither does a figure leave its colours to the library.
    assert not re.search(r"""["']C\d["']|tab:""", text)


@pytest.mark.parametrize("color", drawing.OTHER)
def test_what_is_no_mechanism_has_a_colour_of_its_own_that_is_seen_on_any_page(color):
    def luminance(name):
        channels = np.array(to_rgb(name))
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    assert min(np.abs(np.subtract(to_rgb(color), to_rgb(other))).max() for other in MECHANISMS) > 0.12
    for page in ("#ffffff", "#121212"):  # the contrast that WCAG asks of graphics
        lighter, darker = sorted((luminance(color) + 0.05, luminance(page) + 0.05), reverse=True)
        assert lighter / darker >= 3


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(1e-5, 10, ["0.00001", "0.001", "10"]), (2, 50, ["2", "5", "10", "50"]), (1, 90, ["1", "3", "10", "30"])],
)
def test_logarithmic_axes_show_plain_numbers(low, high, shown):
    panel = Figure().subplots()
    panel.set(yscale="log", ylim=(low, high))
    drawing.plain_numbers(panel.yaxis)
    labels = [panel.yaxis.get_major_formatter()(value, 0) for value in panel.get_yticks()]
    assert set(shown) <= set(labels)
    assert not [label for label in labels if "e" in label]


def test_a_map_of_ratios_treats_half_and_double_alike_and_writes_into_each_cell():
    panel = Figure().subplots()
    drawing.ratio_map(panel, np.array([[0.5, 1.0, 2.0]]), [["half", "one", "double"]])
    (image,) = panel.images
    first, middle, last = image.get_array()[0]
    assert (middle, first) == (0, pytest.approx(-last))
    assert first < 0
    assert [(text.get_text(), *text.get_position()) for text in panel.texts] == [
        ("half", 0, 0),
        ("one", 1, 0),
        ("double", 2, 0),
    ]
