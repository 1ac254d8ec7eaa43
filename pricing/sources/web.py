"""Requests to untrusted servers: http(s) only, one origin, and overall limits on time and size."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from threading import Thread
from typing import Any, TypeVar
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from planner.lazy import dataclass
from planner.text import shortened

TRIES = 3
MOST_REDIRECTS = 5
TIMEOUT_S = 20.0
"""Timeout for a server that sends nothing."""
DEADLINE_S = 300.0
"""Limit for all requests of one refresh, however slowly a server sends."""
MOST_BYTES = 32 * 2**20
"""Limit for all answers of one refresh."""
_BLOCK_BYTES = 2**16
_PORTS = {"http": 80, "https": 443}

T = TypeVar("T")


class FetchError(Exception):
    """A source did not answer, or its answer was not as documented; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Address of a server, and the credentials for it."""

    url: str
    """Without user name and password."""
    authorization: str | None
    """Value of the `Authorization` header, from the user name and password in the address; never shown or stored."""


def parse_address(text: str) -> Address:
    """Read an http(s) address, which may contain `user:password@`.

    Raises:
        FetchError: it is not such an address; the error text repeats no part of it.
    """
    parts = _split(text)
    user, at, place = parts.netloc.rpartition("@")
    authorization = f"Basic {b64encode(unquote(user).encode()).decode()}" if at else None
    return Address(url=parts._replace(netloc=place).geturl(), authorization=authorization)


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        text.encode()
        known = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise FetchError("expected an http or https address, such as https://prices.example/list")
    return parts


def _origin(url: str) -> tuple[str, str | None, int]:
    parts = _split(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme]


def place_of(url: str) -> str:
    """Return an address as messages show it: without the query, which may contain a key."""
    return shortened(url.split("?", 1)[0], 200)


def within(seconds: float, work: Callable[[], T], what: str) -> T:
    """Return the result of `work`, run in a thread that is abandoned when its time is over.

    A socket timeout does not stop a server that sends a byte now and then.

    Raises:
        FetchError: it took longer; `what` names it.
        Exception: whatever `work` raises.
    """
    results: list[T] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:  # raised again in the waiting thread
            errors.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(max(seconds, 0.0))
    if errors:
        raise errors[0]
    if not results:
        raise FetchError(f"{what}: no complete answer in time")
    return results[0]


class Server:
    """One server, with a deadline and a size limit for all its answers.

    It is not trusted to redirect elsewhere: redirects and links are followed only within the origin of its address, so
    that no other host and no local file is read, and no token reaches another host.
    """

    def __init__(self, address: str, *, headers: Mapping[str, str] | None = None, pause_s: float = 1.0) -> None:
        """Store the address; no request is sent yet.

        Args:
            address: http or https; `user:password@` in it becomes a header.
            headers: further request headers.
            pause_s: seconds before the second try of a request; twice as many before the third.

        Raises:
            FetchError: it is not an http(s) address.
        """
        parsed = parse_address(address)
        self.url = parsed.url
        self._headers = {"Accept": "application/json", **(headers or {})}
        if parsed.authorization:
            self._headers["Authorization"] = parsed.authorization
        self._pause_s = pause_s
        self._ends_s = time.monotonic() + DEADLINE_S
        self._bytes_left = MOST_BYTES

    def get_json(self, url: str) -> Any:
        """GET a JSON document in up to three tries with growing pauses; 4xx except 408 and 429 is not retried.

        Raises:
            FetchError: the address is elsewhere, there is no answer, an HTTP error, or an answer that is not JSON, or
                the limit of time or size is reached.
        """
        for attempt in range(TRIES):
            if attempt:
                time.sleep(min(self._pause_s * 2 ** (attempt - 1), max(self._ends_s - time.monotonic(), 0.0)))
            try:
                body = within(self._ends_s - time.monotonic(), lambda: self._follow(url), place_of(url))
                return json.loads(body)
            except _TryAgainError as error:
                reason = str(error)
            except (ValueError, RecursionError):
                reason = "the answer is not JSON"
        raise FetchError(f"{place_of(url)}: {reason}")

    def _follow(self, url: str) -> bytes:
        """Return the body of an answer, after redirects."""
        for _ in range(MOST_REDIRECTS):
            if "@" in _split(url).netloc or _origin(url) != _origin(self.url):
                raise FetchError(f"{place_of(self.url)}: it redirects to another server, which is not followed")
            answer = self._ask(url)
            if isinstance(answer, bytes):
                return answer
            url = urljoin(url, answer.url)
        raise FetchError(f"{place_of(self.url)}: more than {MOST_REDIRECTS} redirects")

    def _ask(self, url: str) -> bytes | _Redirect:
        import http.client
        import urllib.error
        import urllib.request

        request = urllib.request.Request(url, headers=self._headers)
        try:
            with _opener().open(request, timeout=TIMEOUT_S) as answer:
                return self._body(answer)
        except urllib.error.HTTPError as error:
            error.close()
            target = error.headers.get("Location")
            if error.code in (301, 302, 303, 307, 308) and target:
                return _Redirect(url=target)
            if error.code >= 500 or error.code in (408, 429):
                raise _TryAgainError(f"HTTP {error.code}") from None
            raise FetchError(f"{place_of(url)}: HTTP {error.code}") from None
        except http.client.HTTPException as error:
            raise _TryAgainError(f"the answer is not HTTP ({type(error).__name__})") from None
        except OSError as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
            raise _TryAgainError(shortened(reason, 200)) from None
        except ValueError as error:  # the error text may repeat a header, and so a token
            raise FetchError(f"{place_of(url)}: cannot be reached ({type(error).__name__})") from None

    def _body(self, answer: Any) -> bytes:
        blocks = []
        while block := answer.read1(_BLOCK_BYTES):
            self._bytes_left -= len(block)
            if self._bytes_left < 0:
                raise FetchError(f"{place_of(self.url)} answered with more than {MOST_BYTES >> 20} MiB")
            if time.monotonic() > self._ends_s:
                raise FetchError(f"{place_of(self.url)}: no complete answer in time")
            blocks.append(block)
        return b"".join(blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Redirect:
    url: str


class _TryAgainError(Exception):
    """A request failed in a way that may be temporary."""


def _opener() -> Any:
    """Return an opener of http and https addresses only: no file, no FTP, no automatic redirect."""
    import urllib.request as request

    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler(),
        request.HTTPHandler(),
        request.HTTPSHandler(),
        request.HTTPDefaultErrorHandler(),
        request.HTTPErrorProcessor(),
        request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener
