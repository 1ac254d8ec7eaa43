"""Requests to servers that nobody vouches for: they end, stay at one origin, and tell no secret."""

from __future__ import annotations

import socket
import threading
import time
from base64 import b64encode

import pytest

from pricing.sources import web
from pricing.sources.web import FetchError, Server, parse_address, within


def get_json(url):
    server = Server(url)
    return server.get_json(server.url)


@pytest.fixture
def raw_server():
    """Starts a local server that sends bytes as they are, then what a function does with the connection."""
    running = []

    def start(send, then=lambda connection: None):
        listener = socket.create_server(("127.0.0.1", 0))
        running.append(listener)

        def serve():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    try:
                        connection.recv(65536)
                        connection.sendall(send)
                        then(connection)
                    except OSError:
                        pass

        threading.Thread(target=serve, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/prices"

    yield start
    for listener in running:
        listener.close()


def test_a_server_that_stumbles_twice_is_asked_three_times(server):
    asked = []

    def answer(path):
        asked.append(path)
        return (503, b"busy") if len(asked) < 3 else (200, b'{"ok": 1}')

    assert get_json(server(answer)) == {"ok": 1}
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("status", "body", "times", "problem"),
    [(500, b"", 3, "HTTP 500"), (404, b"", 1, "HTTP 404"), (429, b"", 3, "HTTP 429"), (200, b"<html>", 3, "not JSON")],
)
def test_a_server_that_fails_is_given_up_after_bounded_tries(server, status, body, times, problem):
    asked = []

    def answer(path):
        asked.append(path)
        return status, body

    with pytest.raises(FetchError, match=problem):
        get_json(server(answer))
    assert len(asked) == times


def test_a_server_that_is_not_there_is_said():
    with pytest.raises(FetchError, match=r"127\.0\.0\.1:9/prices"):
        get_json("http://127.0.0.1:9/prices?key=secret")


def test_the_query_of_an_address_is_kept_out_of_messages():
    with pytest.raises(FetchError) as caught:
        get_json("http://127.0.0.1:9/prices?key=secret")

    assert "secret" not in str(caught.value)


def test_a_user_name_and_a_password_are_sent_as_a_header_and_shown_nowhere(raw_server):
    address = raw_server(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
    with_password = address.replace("//127", "//ada:let%40me@127")  # The port may contain 127 too.
    parsed = parse_address(with_password)

    assert parsed.url == address
    assert parsed.authorization == "Basic " + b64encode(b"ada:let@me").decode()
    with pytest.raises(FetchError) as caught:
        get_json(with_password)
    assert str(caught.value) == f"{address}: HTTP 404"


@pytest.mark.parametrize(
    "address", ["file:///etc/passwd", "ftp://a/b", "//a/b", "http://", "http://a:b@[/", "http://u:p@a:99999/", "prices"]
)
def test_an_address_that_is_not_http_is_refused_without_repeating_it(address):
    with pytest.raises(FetchError, match=r"^expected an http or https address"):
        Server(address)


@pytest.mark.parametrize("elsewhere", ["file:///etc/hostname", "http://127.0.0.1:9/prices", "https://{host}/prices"])
@pytest.mark.parametrize("status", [b"301", b"302", b"303", b"307", b"308"])
def test_a_redirect_to_another_server_or_a_file_is_not_followed(raw_server, elsewhere, status):
    address = raw_server(b"HTTP/1.1 " + status + b" Go\r\nLocation: " + elsewhere.encode() + b"\r\n\r\n")

    with pytest.raises(FetchError, match=r"redirects to another server|expected an http"):
        get_json(address)


def test_a_redirect_to_the_same_server_is_followed_but_not_for_ever(raw_server):
    address = raw_server(b"HTTP/1.1 302 Go\r\nLocation: /prices?again\r\nContent-Length: 0\r\n\r\n")

    with pytest.raises(FetchError, match="more than 5 redirects"):
        get_json(address)


def test_a_link_to_the_same_server_may_name_its_port():
    server = Server("https://prices.example/list")

    assert web._origin(server.url) == web._origin("https://PRICES.example:443/list?page=2")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Length: minus\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % at for at in range(200)) + b"\r\n{}",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00",
        b"HTTP/1.1 302 Go\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"9" * 5_000,
    ],
)
def test_what_is_no_http_or_no_json_is_said(raw_server, answer):
    with pytest.raises(FetchError, match=r"127\.0\.0\.1"):
        get_json(raw_server(answer))


def test_an_encrypted_request_to_a_server_that_is_not_is_said(raw_server):
    with pytest.raises(FetchError, match=r"127\.0\.0\.1"):
        get_json(raw_server(b"HTTP/1.1 200 OK\r\n\r\n").replace("http:", "https:"))


def test_an_answer_without_end_is_cut_at_a_size(raw_server, monkeypatch):
    monkeypatch.setattr(web, "MOST_BYTES", 2**20)

    def endless(connection):
        while True:
            connection.sendall(b" " * 65536)

    with pytest.raises(FetchError, match="answered with more than 1 MiB"):
        get_json(raw_server(b"HTTP/1.1 200 OK\r\n\r\n", endless))


@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: ", b"H"])
def test_a_server_that_sends_a_byte_now_and_then_is_cut_at_a_time(raw_server, monkeypatch, start):
    monkeypatch.setattr(web, "DEADLINE_S", 0.3)

    def slowly(connection):
        while True:
            connection.sendall(b" ")
            threading.Event().wait(0.02)

    address = raw_server(start, slowly)
    began = time.monotonic()
    with pytest.raises(FetchError, match="no complete answer in time"):
        get_json(address)
    assert time.monotonic() - began < 10


def test_all_pages_together_have_one_size(server, monkeypatch):
    monkeypatch.setattr(web, "MOST_BYTES", 25)
    asked = Server(server(lambda _: (200, b'{"ok": 12345}')))

    asked.get_json(asked.url)
    with pytest.raises(FetchError, match="answered with more than"):
        asked.get_json(asked.url)


def test_what_work_raises_is_raised_where_it_is_waited_for():
    with pytest.raises(ZeroDivisionError):
        within(5, lambda: 1 // 0, "it")
