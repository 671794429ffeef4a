"""Hooks of the documentation site: they turn docstring roles into links and add pages from outside docs/."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):<code>(~?)([\w.]+)</code>")
OUTSIDE = {"security.md": "SECURITY.md", "changelog.md": "CHANGELOG.md"}


def on_files(files: Files, *, config: Any) -> Files:  # noqa: ANN401 - the type is MkDocs' own
    """Add the pages that are at the top of the repository, where people expect them."""
    root = Path(config.config_file_path).parent
    for page, source in OUTSIDE.items():
        text = (root / source).read_text("utf-8").replace("](docs/", "](")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:  # noqa: ANN401
    """Replace the escape for <, which GitHub understands and Python-Markdown does not, by HTML."""
    return markdown.replace("\\<", "&lt;")


def on_page_content(html: str, **_: Any) -> str:  # noqa: ANN401
    """Turn docstring roles into links to the objects that the same page documents."""
    places = re.findall(r'id="(dpselect[\w.]*)"', html)

    def link(found: re.Match[str]) -> str:
        tilde, name = found.groups()
        shown = f"<code>{name.rpartition('.')[2] if tilde else name}</code>"
        matches = [place for place in places if place == name or place.endswith(f".{name}")]
        return f'<a href="#{matches[0]}">{shown}</a>' if matches else shown

    return ROLE.sub(link, html)
