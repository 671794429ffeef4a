"""What the documents show must run, and what they link to must exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))


def test_the_code_of_the_readme_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), flags=re.DOTALL)
    assert len(blocks) >= 2
    namespace = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)  # noqa: S102 - our own text
    assert namespace["pick"] in (0, 1, 2)
    assert "mgem" in capsys.readouterr().out


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "guide").glob("*.md")), ids=lambda page: page.stem)
def test_the_code_of_the_guide_runs(page, capsys):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL)
    namespace = {}
    for block in blocks:
        exec(compile(block, page.name, "exec"), namespace)  # noqa: S102 - our own text
    assert blocks
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(page):
    prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)\)", prose):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target
