"""What the documentation site needs beyond Markdown: roles of docstrings as links, and pages from outside docs/."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):<code>(~?)([\w.]+)</code>")
OUTSIDE = {"security.md": "SECURITY.md", "changelog.md": "CHANGELOG.md"}


def on_files(files: Files, *, config: Any) -> Files:  # noqa: ANN401 - MkDocs' own
    """Add pages that stand at the top of the repository, where people look for them there."""
    root = Path(config.config_file_path).parent
    for page, source in OUTSIDE.items():
        text = (root / source).read_text("utf-8").replace("](docs/", "](")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:  # noqa: ANN401
    """Write an escaped < as HTML does: GitHub knows that escape, Python-Markdown does not."""
    return markdown.replace("\\<", "&lt;")


def on_page_content(html: str, **_: Any) -> str:  # noqa: ANN401
    """Turn the roles of docstrings into links to what the same page documents."""
    places = re.findall(r'id="(dpselect[\w.]*)"', html)

    def link(found: re.Match[str]) -> str:
        tilde, name = found.groups()
        shown = f"<code>{name.rpartition('.')[2] if tilde else name}</code>"
        matches = [place for place in places if place == name or place.endswith(f".{name}")]
        return f'<a href="#{matches[0]}">{shown}</a>' if matches else shown

    return ROLE.sub(link, html)
