"""The page's web server: Python's own, for one person on one machine.

It answers on the loopback address alone. What it is sent stays in memory, and it writes no log.
Requests whose ``Host`` or ``Origin`` is another site's are refused, so that no web page that happens to be open
elsewhere can talk to it. Messages quote nothing of a request but its sliders: it may hold scores.
"""

import json
import sys
import webbrowser
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from dpselect.explorer.views import mechanisms, read_setting, view

LARGEST_REQUEST = 256 * 1024
"""In bytes: several times what the largest number of candidates needs."""

PATIENCE = 30.0
"""In seconds: how long to wait for the next bytes of a request."""

LOOPBACK = "127.0.0.1"

LOCAL_NAMES = frozenset({LOOPBACK, "localhost", "[::1]"})
"""What a browser on this machine may call it."""

SCRIPTS = ("page", "state", "show", "candidates", "charts", "words", "plot")

PAGES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
    "/mechanisms.json": ("mechanisms.json", "application/json"),
    "/scenarios.json": ("scenarios.json", "application/json"),
    **{f"/{name}.js": (f"{name}.js", "text/javascript; charset=utf-8") for name in SCRIPTS},
}

STYLE_OF_PLOT = "'sha256-jSYQUrW7J0b3jPqhZP9C2Xh1PyJKHKXd4s0fpGGKrww='"
"""The one style element that plot.js adds to a chart. The policy allows no other."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        f"default-src 'none'; script-src 'self'; style-src 'self' {STYLE_OF_PLOT}; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, ARG002 - the base class's
        """Say nothing of a browser that hung up, and of a bug only its kind: its message may hold scores."""
        error = sys.exception()
        if not isinstance(error, ConnectionError):
            print(f"dpselect: internal error in the explorer ({type(error).__name__})", file=sys.stderr)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request on each connection, so no bytes of one can pass for another."""

    server: ThreadingHTTPServer
    server_version = "dpselect"
    sys_version = ""
    timeout = PATIENCE

    def do_GET(self) -> None:
        """Send one of the page's files."""
        if not self._is_ours():
            return
        if self._address not in PAGES:
            self._fail(HTTPStatus.NOT_FOUND, "there is no such page")
            return
        name, kind = PAGES[self._address]
        self._send(HTTPStatus.OK, _file(name), kind)

    def do_POST(self) -> None:
        """Answer with the numbers of a setting."""
        if not self._is_ours():
            return
        if self._address != "/view":
            self._fail(HTTPStatus.NOT_FOUND, "there is no such page")
            return
        try:
            length = int(self.headers["Content-Length"])
        except (TypeError, ValueError):
            length = -1
        if 0 <= length <= LARGEST_REQUEST:
            self._answer(self.rfile.read(length))
        else:
            rule = f"the request must have a Content-Length of at most {LARGEST_REQUEST // 1024} KiB"
            self._fail(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, rule)

    def _answer(self, body: bytes) -> None:
        try:
            request = json.loads(body)
        except (ValueError, RecursionError):
            self._fail(HTTPStatus.BAD_REQUEST, "the request must be JSON in UTF-8, with numbers that float64 holds")
            return
        try:
            answer = json.dumps(view(read_setting(request)), allow_nan=False)
        except ValueError as error:  # an answer like any other: someone is still typing
            self._fail(HTTPStatus.OK, str(error))
        except Exception as error:
            self._fail(HTTPStatus.INTERNAL_SERVER_ERROR, f"internal error ({type(error).__name__})")
        else:
            self._send(HTTPStatus.OK, answer.encode(), "application/json")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - the base class's names
        """Keep no log: addresses may hold scores."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Answer what the base class refuses, in a sentence that quotes nothing of it."""
        self._fail(code, "the request must be HTTP: GET or POST, with an address and headers of the usual length")

    @property
    def _address(self) -> str:
        return self.path.partition("?")[0]

    def _is_ours(self) -> bool:
        """Refuse requests that another site's page makes, also by a name that now points to this machine."""
        hosts, origins = (
            [value.strip().lower() for value in self.headers.get_all(name, [])] for name in ("Host", "Origin")
        )
        port = self.server.server_address[1]
        ours = {f"{name}:{port}" for name in LOCAL_NAMES} | (LOCAL_NAMES if port == 80 else set())
        if len(hosts) == 1 and hosts[0] in ours and set(origins) <= {f"http://{hosts[0]}"}:
            return True
        self._fail(HTTPStatus.FORBIDDEN, "the page only answers to itself")
        return False

    def _fail(self, status: int, message: str) -> None:
        self._send(status, json.dumps({"error": message}).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@cache
def _file(name: str) -> bytes:
    if name == "mechanisms.json":
        return json.dumps(mechanisms()).encode()
    return files("dpselect.explorer").joinpath("page", name).read_bytes()


def serve(*, port: int = 0) -> ThreadingHTTPServer:
    """Return a server for the page, bound to this machine's own address and ready; its ``serve_forever`` runs it.

    Args:
        port: The port; 0 takes a free one.

    Example:
        >>> from dpselect.explorer import serve
        >>> with serve() as server:
        ...     server.server_address[0]
        '127.0.0.1'
    """
    return _Server((LOOPBACK, port), _Handler)


def open_page(*, port: int = 0, browser: bool = True) -> None:
    """Serve the page until interrupted.

    Args:
        port: The port; 0 takes a free one.
        browser: Whether to open it in the browser.
    """
    with serve(port=port) as server:
        address = f"http://{LOOPBACK}:{server.server_address[1]}/"
        print(f"Explorer: {address}  (Ctrl-C ends it)", flush=True)
        if browser:
            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
