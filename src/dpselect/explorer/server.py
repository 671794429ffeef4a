"""The page's web server: Python's own, for one person on one machine.

It answers on the loopback address only, unless told otherwise, keeps nothing that it is sent, and writes no log.
Requests whose ``Host`` or ``Origin`` is another site's are refused, so that no web page that happens to be open
elsewhere can talk to it.
"""

import json
import sys
import webbrowser
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from dpselect.explorer.views import MOST_CANDIDATES, read_setting, view

__all__ = ["open_page", "serve"]

LARGEST_REQUEST = 256 * 1024
"""In bytes: several times what the largest number of candidates needs."""

LOOPBACK = "127.0.0.1"

PAGES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "/": ("page.html", "text/html; charset=utf-8"),
        "/page.css": ("page.css", "text/css; charset=utf-8"),
        "/page.js": ("page.js", "text/javascript; charset=utf-8"),
        "/charts.js": ("charts.js", "text/javascript; charset=utf-8"),
        "/icon.svg": ("icon.svg", "image/svg+xml"),
        "/scenarios.json": ("scenarios.json", "application/json"),
    }
)

HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Cache-Control": "no-store",
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the base class's types
        """Say nothing of a browser that hung up; anything else is a bug and is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = "dpselect"
    sys_version = ""

    def do_GET(self) -> None:
        """Send one of the page's files."""
        if not self._is_ours():
            return
        found = PAGES.get(urlsplit(self.path).path)
        if found is None:
            self._fail(HTTPStatus.NOT_FOUND, "there is no such page")
            return
        name, kind = found
        self._send(HTTPStatus.OK, _file(name), kind)

    def do_POST(self) -> None:
        """Answer with the numbers of a setting."""
        if not self._is_ours():
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST_REQUEST:
            self.close_connection = True  # its body is never read
            rule = f"at most {MOST_CANDIDATES} candidates and {LARGEST_REQUEST // 1024} KiB"
            self._fail(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"that is too much to look at: {rule}")
            return
        body = self.rfile.read(int(length))
        if urlsplit(self.path).path != "/view":
            self._fail(HTTPStatus.NOT_FOUND, "there is no such page")
            return
        try:
            answer = view(read_setting(json.loads(body)))
        except (json.JSONDecodeError, RecursionError):
            self._fail(HTTPStatus.BAD_REQUEST, "the request must be JSON")
        except UnicodeDecodeError:
            self._fail(HTTPStatus.BAD_REQUEST, "the request must be UTF-8")
        except ValueError as error:  # an answer like any other: someone is still typing
            self._fail(HTTPStatus.OK, str(error))
        else:
            self._send(HTTPStatus.OK, json.dumps(answer, allow_nan=False).encode(), "application/json")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - the base class's names
        """Keep no log: addresses may hold scores."""

    def _is_ours(self) -> bool:
        """Refuse requests that another site's page makes, also by a name that now points to this machine."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        bound, port = self.server.server_address[:2]
        at_home = bound != LOOPBACK or host in {f"{name}:{port}" for name in (LOOPBACK, "localhost")}
        if not at_home or (origin is not None and origin != f"http://{host}"):
            self.close_connection = True
            self._fail(HTTPStatus.FORBIDDEN, "the page only answers to itself")
            return False
        return True

    def _fail(self, status: HTTPStatus, message: str) -> None:
        self._send(status, json.dumps({"error": message}).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@cache
def _file(name: str) -> bytes:
    return files("dpselect.explorer").joinpath("page", name).read_bytes()


def serve(*, host: str = LOOPBACK, port: int = 0) -> ThreadingHTTPServer:
    """Return a server for the page, bound and ready; its ``serve_forever`` runs it.

    Args:
        host: The address to listen on. Anything but the loopback address shows the page, and with it whatever
            others look at, to everyone who can reach this machine.
        port: The port; 0 takes a free one.

    Example:
        >>> from dpselect.explorer import serve
        >>> with serve() as server:
        ...     server.server_address[0]
        '127.0.0.1'
    """
    return _Server((host, port), _Handler)


def open_page(*, host: str = LOOPBACK, port: int = 0, browser: bool = True) -> None:
    """Serve the page until interrupted.

    Args:
        host: The address to listen on; see :func:`serve`.
        port: The port; 0 takes a free one.
        browser: Whether to open it in the browser.
    """
    with serve(host=host, port=port) as server:
        address = f"http://{server.server_address[0]!s}:{server.server_address[1]}/"
        print(f"Explorer: {address}  (Ctrl-C ends it)", flush=True)
        if browser:
            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
