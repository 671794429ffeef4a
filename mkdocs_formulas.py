"""Formulas between dollar signs become MathML when the site is built, so that pages need no script and no network.

This is an extension of Python-Markdown, not of MkDocs, so that it outlives MkDocs.

Two notations are understood. Pages use LaTeX, which GitHub shows too. Docstrings use plain text, which reads well
in ``help()``: ``$max_{b≠a} e^(−ε g/m_a)$``. Plain text becomes LaTeX first, and LaTeX passes through unchanged.
"""

import re
import unicodedata
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from markdown import Markdown
from markdown.blockprocessors import BlockProcessor
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from math_core import LatexToMathML

INLINE = r"(?<![\\$\w])\$(?![\s$])([^$]+?)(?<![\s\\$])\$(?![\w$])"
FUNCTIONS = {"cosh", "exp", "inf", "log", "max", "min", "Pr", "sin", "sinh", "sup", "tanh"}
OPERATORS = {"argmax": r"\operatorname*{argmax}", "softmax": r"\operatorname{softmax}"}
FRACTIONS = {"½": r"\tfrac12", "¼": r"\tfrac14", "¾": r"\tfrac34", "⅔": r"\tfrac23", "⅓": r"\tfrac13"}
SIGNS = FRACTIONS | {"Δ": r"\Delta ", "Γ": r"\Gamma ", "Φ": r"\Phi ", "·": r"\cdot ", "…": r"\dots ", "Σ": "∑"}
HIGH = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ʲᵏⁿᶻ", "0123456789+−()jknz", strict=True))
LOW = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋ₙ", "0123456789+−n", strict=True))
ACCENTS = {"\u0302": r"\hat", "\u0304": r"\bar"}
WORD = re.compile(r"\\(?:text|mathrm|operatorname\*?|begin|end)\{[^}]*\}|\\[A-Za-z]+|\\.|[A-Za-z]{2,}")

RELATIONS = "=≤≥<>≈"
LONG = 30  # characters of LaTeX; shorter formulas fit on the line of a telephone

CONVERTER = LatexToMathML(fancy_error=False)


def latex(formula: str) -> str:
    """Return a formula in plain text as LaTeX; LaTeX stays as it is."""
    formula = "".join(_accent(sign) for sign in formula)
    formula = re.sub(rf"(\S)([{''.join(ACCENTS)}])", lambda m: f"{ACCENTS[m[2]]}{{{m[1]}}}", formula)
    for mark, signs in (("^", HIGH), ("_", LOW)):
        formula = re.sub(f"[{''.join(signs)}]+", lambda m: _raised(mark, "".join(signs[c] for c in m[0])), formula)  # noqa: B023
    formula = _braces(formula)
    for opening, grouped in (("^(", "^"), ("_(", "_"), ("√(", r"\sqrt")):
        while opening in formula:
            formula = _group(formula, formula.index(opening), len(opening), grouped)
    formula = re.sub(r"√(\w)", r"\\sqrt{\1}", formula)
    formula = re.sub(r"([\^_])([−+±-]\w+)", r"\1{\2}", formula)
    formula = re.sub(r"_([A-Za-z0-9]{2,})", lambda m: f"_{{{_word(m[1])}}}", formula)
    formula = WORD.sub(lambda m: _word(m[0]), formula)
    for sign, written in SIGNS.items():
        formula = formula.replace(sign, written)
    return re.sub(r"(\\[A-Za-z]+) (?=[\s_^()[\]}])", r"\1", formula)


def _raised(mark: str, text: str) -> str:
    text = text.strip("()")
    return f"{mark}{text}" if len(text) == 1 else f"{mark}{{{text}}}"


def _accent(sign: str) -> str:
    """Take apart a letter with a hat or a bar."""
    return unicodedata.normalize("NFD", sign) if sign.isalpha() else sign


def _braces(formula: str) -> str:
    """Escape the braces that are shown: those that follow neither an index, an exponent nor a command."""
    formula = formula.replace(r"\{", "\x01").replace(r"\}", "\x02")
    while found := re.search(r"([_^*\w\x04]?){([^{}]*)}", formula):
        shown = f"{found[1]}\x03{found[2]}\x04" if found[1] else f"\x01{found[2]}\x02"
        formula = formula[: found.start()] + shown + formula[found.end() :]
    for sign, written in zip("\x01\x02\x03\x04", (r"\{", r"\}", "{", "}"), strict=True):
        formula = formula.replace(sign, written)
    return formula


def _group(formula: str, start: int, skip: int, grouped: str) -> str:
    """Replace the parentheses that open at ``start`` by braces, which are not shown."""
    depth, end = 1, start + skip
    while depth:
        depth += {"(": 1, ")": -1}.get(formula[end], 0)
        end += 1
    return f"{formula[:start]}{grouped}{{{formula[start + skip : end - 1]}}}{formula[end:]}"


def _word(word: str) -> str:
    r"""Return a function as ``\log``, another word as text, and two letters as a product."""
    if word.startswith("\\") or (len(word) < 3 and word not in FUNCTIONS) or not word.isalpha():
        return word
    return f"\\{word} " if word in FUNCTIONS else OPERATORS.get(word, rf"\text{{{word}}}")


def _pieces(written: str) -> list[str]:
    """Cut LaTeX before the relations outside of all brackets: browsers do not break formulas by themselves."""
    pieces, depth = [""], 0
    for part in re.split(rf"( [{RELATIONS}] |[()\[\]{{}}])", written):
        depth += (part in {"(", "[", "{"}) - (part in {")", "]", "}"})
        if depth == 0 and re.fullmatch(f" [{RELATIONS}] ", part):
            pieces.append("{}" + part)  # an empty group gives the relation its space
        else:
            pieces[-1] += part
    return pieces


def mathml(formula: str, *, display: bool) -> str:
    """Return a formula as MathML; a long one within text may be broken before its relations."""
    written = latex(" ".join(formula.split()))
    pieces = _pieces(written) if not display and len(written) > LONG else [written]
    try:
        return "<wbr>".join(CONVERTER.convert_with_local_state(piece, displaystyle=display) for piece in pieces)
    except Exception as error:
        raise ValueError(f"cannot typeset ${formula}$, read as ${written}$: {error}") from error


class _Inline(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # noqa: ARG002, N802 - Markdown's names
        return self.md.htmlStash.store(mathml(m[1], display=False)), m.start(0), m.end(0)


class _Display(BlockProcessor):
    def test(self, parent: Element, block: str) -> bool:  # noqa: ARG002
        return block.startswith("$$") and block.rstrip().endswith("$$")

    def run(self, parent: Element, blocks: list[str]) -> None:
        shown = SubElement(parent, "div", {"class": "formula", "tabindex": "0"})
        shown.text = self.parser.md.htmlStash.store(mathml(blocks.pop(0).strip()[2:-2], display=True))


class Formulas(Extension):
    """Typesets ``$…$`` within text, and ``$$…$$`` as a paragraph of its own."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Register both forms: after code, which stays as it is, and before emphasis."""
        md.inlinePatterns.register(_Inline(INLINE, md), "formula", 185)
        md.parser.blockprocessors.register(_Display(md.parser), "formula", 75)


def makeExtension(**options: Any) -> Formulas:  # noqa: ANN401, N802
    """Return the extension; Markdown looks for this name."""
    return Formulas(**options)
