"""The description of the package for an index: the README, whose links must work where there is no repository."""

import re
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"```.*?```|`[^`]*`|(!?)\[([^\]]*)\]\((?!https?://|#)([^)\s]+)\)", flags=re.DOTALL)
"""A relative link; or code, where brackets mean something else."""


class CustomMetadataHook(MetadataHookInterface):
    """Gives the README to the package's metadata, with links that an index can follow."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the field ``readme``."""
        with open(f"{self.root}/README.md", encoding="utf-8") as file:  # noqa: PTH123 - the build needs no more
            text = with_links(file.read(), metadata.get("urls", {}).get("Source"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def with_links(text: str, source: str | None) -> str:
    """Return a README whose relative links lead to the source repository, or are text if it has no address."""

    def replace(link: re.Match[str]) -> str:
        image, label, path = link.groups()
        if path is None:
            return link[0]
        if source is not None:
            return f"{image}[{label}]({source.rstrip('/')}/{'raw' if image else 'blob'}/main/{path})"
        return f"*{label}*" if image else f"{label} (`{path}`)" if label != path else f"`{path}`"

    return LINK.sub(replace, text)
