"""A page to look at mechanisms: exact probabilities, errors and privacy losses of a handful of candidates.

``dpselect explore`` opens it. It needs nothing but the library itself: Python's own web server, bound to this
machine, and a page that loads nothing from elsewhere.
"""

from dpselect.explorer.server import open_page, serve

__all__ = ["open_page", "serve"]
