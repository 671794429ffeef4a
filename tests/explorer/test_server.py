"""The page's server: who it answers, and what."""

import http.client
import json
import threading
from contextlib import closing

import pytest

from dpselect.explorer import serve
from dpselect.explorer.server import LARGEST_REQUEST, PAGES


@pytest.fixture(scope="module")
def server():
    with serve() as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def ask(server):
    def send(method, path, body=None, headers=None):
        with closing(http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)) as connection:
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            return response.status, response.read(), response.headers

    return send


GOOD = json.dumps({"scores": [0.0, 1.0], "sensitivities": [1.0, 1.0]})


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_sent_with_a_policy_that_lets_nothing_else_in(ask, path):
    status, body, headers = ask("GET", path)
    assert (status, headers["Content-Type"]) == (200, PAGES[path][1])
    assert len(body) == int(headers["Content-Length"]) > 100
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"


def test_numbers_are_sent_as_json(ask):
    status, body, headers = ask("POST", "/view", GOOD)
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert sum(json.loads(body)["probabilities"]["gem"]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "word"),
    [
        ("GET", "/elsewhere", None, 404, "no such page"),
        ("GET", "/../server.py", None, 404, "no such page"),
        ("POST", "/elsewhere", GOOD, 404, "no such page"),
        ("POST", "/view", "{", 400, "JSON"),
        ("POST", "/view", "[]", 200, "object"),
        ("POST", "/view", '{"scores": [1, 2], "sensitivities": [1, NaN]}', 200, "sensitivities must be finite"),
        ("POST", "/view", "[" * 100_000, 400, "JSON"),
        ("POST", "/view", f'{{"scores": [{"9" * 400}, 1], "sensitivities": [1, 1]}}', 200, "scores must be finite"),
        ("POST", "/view", b"\xff", 400, "UTF-8"),
    ],
)
def test_bad_requests_get_a_sentence(ask, method, path, body, status, word):
    found, answer, _ = ask(method, path, body)
    assert found == status
    assert word in json.loads(answer)["error"]


def test_a_request_that_is_too_large_is_not_even_read(server):
    with closing(http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)) as connection:
        connection.putrequest("POST", "/view")
        connection.putheader("Content-Length", str(LARGEST_REQUEST + 1))
        connection.endheaders()
        response = connection.getresponse()
        assert response.status == 413
        assert "too much" in json.loads(response.read())["error"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "attacker.example"},
        {"Host": "attacker.example", "Origin": "http://attacker.example"},
        {"Origin": "http://attacker.example"},
        {"Origin": "null"},
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_sites_are_not_answered(ask, method, headers):
    status, _, _ = ask(method, "/view" if method == "POST" else "/", GOOD if method == "POST" else None, headers)
    assert status == 403


def test_only_this_machine_is_listened_to(server):
    assert server.server_address[0] == "127.0.0.1"


def test_nothing_is_logged(ask, capfd):
    ask("POST", "/view", GOOD)
    ask("GET", "/elsewhere")
    assert capfd.readouterr() == ("", "")
