"""The page's server: who it answers, and what."""

import http.client
import json
import math
import socket
import threading
from contextlib import closing

import pytest

from dpselect.explorer import serve
from dpselect.explorer.server import LARGEST_REQUEST, PAGES, _Handler

PATIENCE = 600
"""The time in seconds within which a busy machine must answer, also if it compiles kernels first."""


@pytest.fixture(scope="module")
def server():
    with serve() as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def ask(server):
    def send(method, path, body=None, headers=None):
        with closing(http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=PATIENCE)) as connection:
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
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert not [word for word in ("unsafe", "http", "data:", "*") if word in policy]
    assert headers["Cache-Control"] == "no-store"


def test_numbers_are_sent_as_json(ask):
    status, body, headers = ask("POST", "/view", GOOD)
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert sum(json.loads(body)["probabilities"]["gem"]) == pytest.approx(1)


# --- Requests that are wrong ------------------------------------------------------------------------------

PRIVATE = "0.123456789"
"""A score that must not appear in any answer or log."""


def with_setting(**change):
    return json.dumps({"scores": [float(PRIVATE), 1.0], "sensitivities": [1.0, 1.0]} | change)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("", "JSON"),
        ("{", "JSON"),
        (PRIVATE + "}", "JSON"),
        ("[" * 100_000, "JSON"),
        ('{"scores": ' * 20_000, "JSON"),
        (b"\xff", "JSON in UTF-8"),
        (f'{{"scores": [{"9" * 9999}, 1], "sensitivities": [1, 1]}}', "numbers that float64 holds"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_not_json_is_a_bad_request(ask, capfd, body, word):
    status, answer, _ = ask("POST", "/view", body)
    assert status == 400
    assert word in json.loads(answer)["error"]
    assert PRIVATE not in answer.decode()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "body",
    [
        "[]",
        "null",
        PRIVATE,
        with_setting(scores={PRIVATE: 1.0}),
        with_setting(scores=[[float(PRIVATE)], [1.0]]),
        with_setting(names=[1, 2]),
        with_setting(names={PRIVATE: "b"}),
        with_setting(names=[PRIVATE]),
        with_setting(chosen=[PRIVATE]),
        with_setting(parts=PRIVATE),
    ],
)
def test_what_the_page_never_sends_is_answered_without_a_quote(ask, capfd, body):
    status, answer, _ = ask("POST", "/view", body)
    assert status in {200, 500}
    assert json.loads(answer)["error"]
    assert PRIVATE not in answer.decode()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"scores": [1.0]}, "at least 2"),
        ({"sensitivities": [1.0, -1.0]}, "sensitivities must be ≥ 0"),
        ({"neighbour": [9.0, 1.0]}, "within the sensitivities"),
        ({"scores": [1e300, 1.0]}, "at most 2^300 in magnitude"),
        ({"scores": PRIVATE}, "scores must hold numbers"),
        ({"scores": [PRIVATE, 1.0]}, "scores must hold numbers"),
        ({"scores": [[0.5], True]}, "scores must be rectangular"),
        ({"scores": [1.0, 10**400]}, "scores must hold numbers"),
        ({"scores": [1.0, math.inf]}, "scores must be finite"),
        ({"sensitivities": None}, "sensitivities must hold numbers"),
        ({"sensitivities": [1.0, math.nan]}, "sensitivities must be finite"),
        ({"neighbour": [None, 1.0]}, "neighbour must hold numbers"),
        ({"epsilon": "1"}, "epsilon must be a number"),
        ({"beta": None}, "beta must be a number"),
        ({"epsilon": 1234.5678}, "epsilon must be between 0.001 and 1000"),
        ({"beta": 1.2345678}, "beta must be between 1e-12 and 1"),
        ({"gamma": -1.2345678}, "gamma must be between"),
        ({"tilt": 1234.5678}, "tilt must be between"),
    ],
)
def test_settings_that_break_a_rule_are_answered_by_the_rule(ask, capfd, change, word):
    status, answer, _ = ask("POST", "/view", with_setting(**change))
    assert status == 200  # a person may type these; browsers keep a log of everything else
    assert word in json.loads(answer)["error"]
    assert PRIVATE not in answer.decode()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("method", "path", "status", "word"),
    [
        ("GET", "/elsewhere", 404, "no such page"),
        ("GET", "/../server.py", 404, "no such page"),
        ("GET", "/%2e%2e/server.py", 404, "no such page"),
        ("GET", "/view", 404, "no such page"),
        ("GET", "//[", 404, "no such page"),
        ("POST", "/elsewhere", 404, "no such page"),
        ("POST", "/", 404, "no such page"),
        ("PUT", "/view", 501, "GET or POST"),
        ("DELETE", "/", 501, "GET or POST"),
        ("OPTIONS", "/view", 501, "GET or POST"),
        ("TRACE", "/", 501, "GET or POST"),
        ("get", "/", 501, "GET or POST"),
        ("GET", "/" + "a" * 70_000, 414, "usual length"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_unknown_pages_and_methods_are_refused(ask, capfd, method, path, status, word):
    found, answer, _ = ask(method, path, GOOD if method in {"POST", "PUT"} else None)
    assert found == status
    assert word in json.loads(answer)["error"]
    assert capfd.readouterr() == ("", "")


def test_a_head_request_gets_no_body(ask):
    status, answer, _ = ask("HEAD", "/")
    assert (status, answer) == (501, b"")


@pytest.fixture
def say(server):
    """Return a function that sends raw bytes and returns the sentence of the answer."""

    def send(request):
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=PATIENCE) as connection:
            connection.sendall(request.replace(b"HOST", b"Host: 127.0.0.1:%d" % server.server_port))
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as stream:
                answer = stream.read()  # to the end: the server closes the connection
        assert answer.count(b'{"error"') == 1
        return json.loads(answer[answer.index(b'{"error"') :])["error"]

    return send


def post(*headers):
    return b"\r\n".join([b"POST /view HTTP/1.1", b"HOST", *headers, b"", b""])


@pytest.mark.parametrize(
    ("request_", "word"),
    [
        (post(), "must have a Content-Length"),
        (post(b"Transfer-Encoding: chunked"), "must have a Content-Length"),
        (post(b"Content-Length: -1"), "must have a Content-Length"),
        (post(b"Content-Length: 1e3"), "must have a Content-Length"),
        (post(b"Content-Length: \xb2"), "must have a Content-Length"),
        (post(b"Content-Length: " + b"9" * 30), "at most 256 KiB"),
        (post(b"Content-Length: " + b"9" * 5000), "at most 256 KiB"),  # more digits than Python reads
        (post(b"Content-Length: 500") + b'{"scores": [', "must be JSON"),  # it ends too early
        (b"POST /view HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", "must be HTTP"),
        (b"what is this\r\n\r\n", "must be HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "must be HTTP"),  # TLS
        (b"GET http://attacker.example/ HTTP/1.1\r\nHOST\r\n\r\n", "no such page"),
        (b"GET http://[ HTTP/1.1\r\nHOST\r\n\r\n", "no such page"),
        (b"GET / HTTP/2.0\r\n\r\n", "must be HTTP"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_malformed_http_requests_get_a_sentence(say, capfd, request_, word):
    assert word in say(request_)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("sent", [b"POST /view HTTP/1.1\r\nHos", post(b"Content-Length: 500") + b'{"scores": ['])
def test_waiting_for_the_rest_of_a_request_ends(server, monkeypatch, capfd, sent):
    monkeypatch.setattr(_Handler, "timeout", 0.2)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=PATIENCE) as connection:
        connection.sendall(sent.replace(b"HOST", b"Host: 127.0.0.1:%d" % server.server_port))
        assert connection.recv(1) == b""
    assert capfd.readouterr() == ("", "")


def test_a_request_that_is_too_large_is_not_read(server):
    with closing(http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=PATIENCE)) as connection:
        connection.putrequest("POST", "/view")
        connection.putheader("Content-Length", str(LARGEST_REQUEST + 1))
        connection.endheaders()
        response = connection.getresponse()
        assert response.status == 413
        assert "at most 256 KiB" in json.loads(response.read())["error"]


def test_an_unexpected_body_is_not_read_as_a_second_request(server):
    second = f"GET /elsewhere HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n"
    first = f"GET /icon.svg HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\nContent-Length: {len(second)}\r\n"
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=PATIENCE) as connection:
        connection.sendall(f"{first}\r\n{second}".encode())
        with connection.makefile("rb") as stream:
            answer = stream.read()
    assert answer.count(b"HTTP/1.0 ") == 1


def test_a_bug_is_reported_without_its_message(ask, monkeypatch, capfd):
    def broken(setting):
        raise ArithmeticError(f"no logarithm of {setting.scores}")

    monkeypatch.setattr("dpselect.explorer.server.view", broken)
    status, answer, _ = ask("POST", "/view", with_setting())
    assert (status, json.loads(answer)["error"]) == (500, "internal error (ArithmeticError)")
    assert capfd.readouterr() == ("", "")


def test_a_bug_outside_an_answer_shows_only_its_type(ask, monkeypatch, capfd):
    def broken(_):
        raise ArithmeticError(PRIVATE)

    monkeypatch.setattr(_Handler, "do_GET", broken)
    with pytest.raises(http.client.RemoteDisconnected):
        ask("GET", "/")
    assert capfd.readouterr() == ("", "dpselect: internal error in the explorer (ArithmeticError)\n")


@pytest.mark.parametrize("tilt", [-64, 64])
@pytest.mark.parametrize("epsilon", [1e-3, 1e3])
def test_numbers_at_the_ends_of_their_ranges_are_answered(ask, capfd, epsilon, tilt):
    large = 2.0**300
    setting = {"scores": [large, -large, 0.0, 2.0**-300], "sensitivities": [large, 2.0**-300, 0.0, 1.0]}
    status, answer, _ = ask(
        "POST", "/view", json.dumps(setting | {"epsilon": epsilon, "tilt": tilt, "gamma": 1e-9})
    )
    assert status == 200
    assert "probabilities" in json.loads(answer)
    assert capfd.readouterr() == ("", "")


# --- Requests of other sites ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "attacker.example"},
        {"Host": "attacker.example:PORT"},
        {"Host": "attacker.example:PORT", "Origin": "http://attacker.example:PORT"},  # DNS rebinding
        {"Host": "localhost.attacker.example:PORT"},
        {"Host": "127.0.0.1.attacker.example:PORT"},
        {"Host": "attacker.example@127.0.0.1:PORT"},
        {"Host": "127.0.0.1"},
        {"Host": "localhost"},
        {"Host": "localhost:1"},
        {"Host": "127.0.0.1:PORT:PORT"},
        {"Host": "10.0.0.1:PORT"},
        {"Host": "0.0.0.0:PORT"},
        {"Host": "[::1"},
        {"Host": ""},
        {"Origin": "http://attacker.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:PORT"},
        {"Origin": "http://localhost:PORT"},  # a foreign page could send it with the Host 127.0.0.1
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_sites_are_not_answered(ask, server, method, headers):
    sent = {name: value.replace("PORT", str(server.server_port)) for name, value in headers.items()}
    status, answer, _ = ask(method, "/view" if method == "POST" else "/", GOOD if method == "POST" else None, sent)
    assert (status, json.loads(answer)["error"]) == (403, "the page only answers to itself")


@pytest.mark.parametrize("lines", [b"", b"HOST\r\nHost: attacker.example\r\n", b"HOST\r\nHOST\r\n"])
def test_a_request_must_name_its_host_once(say, lines):
    assert say(b"GET / HTTP/1.1\r\n" + lines + b"\r\n") == "the page only answers to itself"


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_this_machine_is_answered_by_each_of_its_names(ask, server, name):
    host = f"{name}:{server.server_port}"
    for headers in ({"Host": host}, {"Host": host, "Origin": f"http://{host}"}):
        assert ask("GET", "/", headers=headers)[0] == 200
        assert ask("POST", "/view", GOOD, headers)[0] == 200


def test_only_this_machine_is_listened_to(server):
    assert server.server_address[0] == "127.0.0.1"


def test_nothing_is_logged(ask, capfd):
    ask("POST", "/view", GOOD)
    ask("GET", "/elsewhere?score=" + PRIVATE)
    assert capfd.readouterr() == ("", "")
