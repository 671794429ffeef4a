"""Hooks of the documentation site: formulas, links from docstrings, notebooks, and files outside docs/ as pages."""

import base64
import json
import re
from pathlib import Path
from typing import Any

from markdown import Markdown
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor
from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

from mkdocs_formulas import Formulas

ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):<code>(~?)([\w.]+)</code>")
PATH = re.compile(r"(?<![\w/])docs/[\w/-]+\.md")
NOTEBOOKS = ("tutorial",)
FOUND_FIRST = ("guide/sensitivities", "guide/install", "guide/own-mechanism")
"""What people search for by name."""
OUTSIDE = {"security.md": "SECURITY.md", "changelog.md": "CHANGELOG.md"}


def on_config(config: Any) -> Any:  # noqa: ANN401 - the type is MkDocs' own
    """Typeset the formulas of pages and docstrings, and show doctests as code."""
    config.markdown_extensions += [Formulas(), Doctests()]
    return config


def on_files(files: Files, *, config: Any) -> Files:  # noqa: ANN401 - the type is MkDocs' own
    """Add the pages that are at the top of the repository, where people expect them, and the notebooks."""
    root = Path(config.config_file_path).parent
    for page, source in OUTSIDE.items():
        text = (root / source).read_text("utf-8").replace("](docs/", "](")
        files.append(File.generated(config, page, content=text))
    for name in NOTEBOOKS:
        notebook = json.loads((Path(config.docs_dir) / f"{name}.ipynb").read_text("utf-8"))
        text, pictures = notebook_page(notebook, name)
        title, _, rest = text.partition("\n\n")
        origin = f"*This page is a Jupyter notebook, `docs/{name}.ipynb`, with its output.*"
        files.append(File.generated(config, f"{name}.md", content=f"{title}\n\n{origin}\n\n{rest}"))
        for picture, content in pictures.items():
            files.append(File.generated(config, picture, content=content))
    return files


def notebook_page(notebook: dict[str, Any], name: str) -> tuple[str, dict[str, bytes]]:
    """Return a notebook with its output as Markdown, and its pictures by file name."""
    parts, pictures = [], {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {"text/plain": output.get("text")})
            if "image/png" in data:
                picture = f"{name}-{len(pictures) + 1}.png"
                pictures[picture] = base64.b64decode(data["image/png"])
                parts.append(f"![What the code above draws]({picture})")
            elif "text/html" in data:
                table = re.sub(r"<style.*?</style>", "", "".join(data["text/html"]), flags=re.DOTALL)
                plain = re.sub(r"<(table|tr) [^>]*>", r"<\1>", table)  # the theme styles tables without classes
                parts.append(re.sub(r"\n\s*", "\n", plain).strip())
            else:
                parts.append(f"```text\n{''.join(data['text/plain']).rstrip()}\n```")
    return "\n\n".join(parts), pictures


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:  # noqa: ANN401
    """Link to the pages of notebooks, and replace GitHub's escape for <, which Python-Markdown does not know.

    The search prefers guides to theory and reference, and lists records of decisions and changes last.
    """
    if page.file.src_uri.startswith(("guide/", "comparison", *NOTEBOOKS)):
        page.meta["search"] = {"boost": 10 if page.file.src_uri.startswith(FOUND_FIRST) else 3}
    if page.file.src_uri.startswith(("decisions/", "changelog")):
        page.meta["search"] = {"boost": 0.1}
    for name in NOTEBOOKS:
        markdown = markdown.replace(f"{name}.ipynb)", f"{name}.md)")
    return markdown.replace("\\<", "&lt;")


def on_page_content(html: str, *, config: Any, **_: Any) -> str:  # noqa: ANN401
    """Put drawings into the page itself, where they take on its colours."""

    def drawing(found: re.Match[str]) -> str:
        return (Path(config.docs_dir) / found[1]).read_text("utf-8")

    return re.sub(r'<p><img [^>]*src="(images/[\w-]+\.svg)"[^>]*></p>', drawing, html)


def on_env(env: Any, *, files: Files, **_: Any) -> Any:  # noqa: ANN401
    """Turn docstring roles and names of pages into links, once it is known what is on which page."""
    pages = [file.page for file in files.documentation_pages() if file.page]
    places = {place: page for page in pages for place in re.findall(r'id="(dpselect[\w.]*)"', page.content or "")}
    titled = {f"docs/{page.file.src_uri}": page for page in pages}
    for page in pages:
        page.content = ROLE.sub(lambda found: _link(found, page, places), page.content or "")  # noqa: B023
        if page.file.src_uri.startswith("reference/"):
            page.content = PATH.sub(lambda found: _title(found[0], page, titled), page.content)  # noqa: B023
    return env


def _title(path: str, page: Any, titled: dict[str, Any]) -> str:  # noqa: ANN401
    """Return the title of a page as a link, where a docstring names its file."""
    target = titled.get(path)
    return f'<a href="{get_relative_url(target.url, page.url)}">{target.title}</a>' if target else path


def _link(found: re.Match[str], page: Any, places: dict[str, Any]) -> str:  # noqa: ANN401
    tilde, name = found.groups()
    shown = f"<code>{name.rpartition('.')[2] if tilde else name}</code>"
    matches = [place for place in places if place == name or place.endswith(f".{name}")]
    if not matches:
        return shown
    place = min(matches, key=lambda match: (places[match] is not page, len(match)))  # on this page, if possible
    url = "" if places[place] is page else get_relative_url(places[place].url, page.url)
    return f'<a href="{url}#{place}">{shown}</a>'


class _Doctests(Preprocessor):
    """Examples of docstrings become code; without it, Markdown takes ``>>>`` for three quotations."""

    def run(self, lines: list[str]) -> list[str]:
        text = re.sub(r"(?m)^( *)>>> .*(?:\n\1(?=\S).*)*", r"\1```pycon\n\g<0>\n\1```", "\n".join(lines))
        return text.split("\n")


class Doctests(Extension):
    """Shows doctests as code."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - Markdown's name
        """Come before fenced code is read."""
        md.preprocessors.register(_Doctests(md), "doctests", 26)
