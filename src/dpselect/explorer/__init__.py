"""A local page about mechanisms: exact probabilities, errors and privacy losses for a few candidates.

``dpselect explore`` opens it. It needs only the library: Python's own web server, bound to this machine, and a page
that loads nothing from elsewhere.
"""

from dpselect.explorer.server import open_page, serve

__all__ = ["open_page", "serve"]
