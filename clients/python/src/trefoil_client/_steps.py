"""What a client does, without a socket: events, errors, and the steps of each operation.

Steps know neither sockets nor asyncio. `Trefoil` and `AsyncTrefoil` carry them out, each in its own
way.
"""

from __future__ import annotations

import json
import random
import socket
import ssl
import time
import uuid
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict, TypeVar, cast

import httpx

Json = Any
"""A JSON value: None, bool, int, float, str, or a list or dict of them."""
Query = dict[str, Json]
"""Which events: {"items": [{"types": [...], "tags": [...]}], "stream" or "category": name}."""


class Commit(TypedDict, total=False):
    """What one commit checks, appends and changes."""

    conditions: Sequence[dict[str, Json]]
    events: Sequence[dict[str, Json]]
    state: Sequence[Sequence[Json]]
    tracking: dict[str, Json]
    strict: bool
    id: str


Committed = dict[str, Json]
"""{"commit", "globalPosition", "events", "state"}; "state" has the replies of the commands."""
FIRST_PAUSE, PAUSE_MAX, PAGE = 0.02, 1.0, 1000


class TrefoilError(Exception):
    """What the server refused, or could not be asked. `code` is that of the HTTP API."""

    def __init__(self, code: str, message: str, details: dict[str, Json] | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.details = code, message, details or {}


class InvalidRequest(TrefoilError):
    """The request is wrong. To send it again does not help."""


class Unauthorized(TrefoilError):
    """The token is missing, wrong, or not sufficient."""


class Conflict(TrefoilError):
    """A condition does not hold. Nothing was written. Read again, decide again."""


class CommandFailed(TrefoilError):
    """A state command failed. Nothing was written."""


class Unavailable(TrefoilError):
    """The server cannot be reached, is overloaded, has no space, or another node has the namespace.

    Or the namespace has used up a quota. Nothing was written. The code is `ADDRESS` or `TLS` if
    there is no such host, or no secure connection to it: to try again does not help.
    """


class OutcomeUnknown(TrefoilError):
    """It is not known whether the request was carried out. Commit again with the same id."""


class Lost(OutcomeUnknown):
    """No answer of the server arrived, or only a part of it. A proxy may have answered instead."""


ERRORS: dict[str, type[TrefoilError]] = {
    **dict.fromkeys(["INVALID_REQUEST", "METHOD_NOT_FOUND", "NOT_FOUND"], InvalidRequest),
    **dict.fromkeys(["AUTH_REQUIRED", "AUTH_INVALID_TOKEN", "AUTH_UNAUTHORIZED"], Unauthorized),
    **dict.fromkeys(["STREAM_VERSION_CONFLICT", "CONDITION_FAILED", "GUARD_FAILED"], Conflict),
    **dict.fromkeys(["TRACKING_CONFLICT", "DUPLICATE_ID"], Conflict),
    **dict.fromkeys(["OVERLOADED", "CLOSED", "DISK_FULL", "WRONG_NODE"], Unavailable),
    "QUOTA_EXCEEDED": Unavailable,
    "COMMAND_FAILED": CommandFailed,
    **dict.fromkeys(["OUTCOME_UNKNOWN", "INTERNAL_ERROR"], OutcomeUnknown),
}
HOPELESS = frozenset(["ADDRESS", "TLS"])
"""The codes of what cannot be reached, however often one tries."""


@dataclass(frozen=True, slots=True)
class Event:
    """A stored event. One without a stream has the stream "" and the position -1."""

    id: str
    stream: str
    type: str
    position: int
    global_position: int
    data: Json
    metadata: Json
    time: str
    tags: list[str]


Found = tuple[list[Event], int]


class Call(NamedTuple):
    """One call of the HTTP API."""

    method: str
    arguments: tuple[Json, ...]


class Pause(NamedTuple):
    seconds: float


class Ask(NamedTuple):
    """A call of the application's own function, which may be a coroutine function."""

    function: Callable[[Any], Any]
    argument: Any


T = TypeVar("T")
Step = Call | Pause | Ask
Steps = Generator[Step, Any, T]


def repeat(seconds: float, method: str, *arguments: Json) -> Steps[Json]:
    """Repeats a call that may be repeated until it is done, refused, or time is up.

    It is a commit with an id, or a read. What the server says may have happened is for the caller
    to decide about. Once an answer was lost, only an answer to the same commit tells what became
    of it: an attempt that did not get that far does not.
    """
    end, pause, is_unknown = time.monotonic() + seconds, FIRST_PAUSE, False
    while True:
        try:
            return (yield Call(method, arguments))
        except (Lost, Unauthorized, Unavailable) as error:
            is_unknown |= isinstance(error, Lost)
            is_final = isinstance(error, Unauthorized) or error.code in HOPELESS
            if is_final or time.monotonic() + pause > end:
                if not is_unknown:
                    raise
                kind = OutcomeUnknown if method == "commit" else Unavailable
                raise kind(error.code, error.message, error.details) from error
        yield Pause(pause * random.uniform(0.5, 1.5))
        pause = min(2 * pause, PAUSE_MAX)


def commit(seconds: float, parts: Commit) -> Steps[Committed]:
    """A commit with an id."""
    named = {"id": str(uuid.uuid4()), **parts}
    committed: Committed = yield from repeat(seconds, "commit", named)
    return committed


def find(seconds: float, query: Query, options: dict[str, Json]) -> Steps[Found]:
    """The events that match, and the head of the log."""
    found = yield from repeat(seconds, "events.query", {"items": [], **query}, options)
    return [Event(*row) for row in found["events"]], found["head"]


def page(
    seconds: float, query: Query, after: int | None, backwards: bool
) -> Steps[tuple[list[Event], bool]]:
    """The next events that match, and whether they are the last ones."""
    direction = "backwards" if backwards else "forwards"
    options: dict[str, Json] = {"direction": direction, "batchSize": PAGE}
    if after is not None:
        options["after"] = after
    events, _ = yield from find(seconds, query, options)
    return events, len(events) < PAGE


def decide(
    seconds: float, query: Query, function: Callable[[Any], Any], attempts: int
) -> Steps[Committed | None]:
    """Read, decide, commit if nothing new matches; again after a conflict."""
    for attempt in range(1, attempts + 1):
        events, head = yield from find(seconds, query, {})
        decision: Commit | None = yield Ask(function, events)
        if decision is None:
            return None
        conditions = [*decision.get("conditions", ()), {"query": query, "after": head}]
        try:
            decision = cast(Commit, {**decision, "conditions": conditions})
            return (yield from commit(seconds, decision))
        except Conflict as error:
            if error.code == "DUPLICATE_ID" or attempt == attempts:
                raise
    raise ValueError("attempts must be at least 1")


def project(seconds: float, name: str, event: Event, function: Callable[[Any], Any]) -> Steps[None]:
    """One event of a projection: its commit, with the position."""
    parts: Commit | None = yield Ask(function, event)
    if parts is not None:
        tracking = {"source": name, "position": event.global_position}
        try:
            yield from commit(seconds, cast(Commit, {**parts, "tracking": tracking}))
        except Conflict as error:
            if error.code != "TRACKING_CONFLICT":  # Otherwise it has been applied before.
                raise


def check_address(url: str) -> None:
    """Raises an error if there can be no server at this address."""
    try:
        address = httpx.URL(url)
        if address.scheme not in ("http", "https") or not address.host:
            raise ValueError("it does not begin with http:// or https:// and a host")
        if not 0 < (address.port or 80) < 65536:
            raise ValueError(f"there is no port {address.port}")
        address.host.encode("idna")
    except (httpx.InvalidURL, ValueError) as error:  # UnicodeError is a ValueError.
        raise Unavailable("ADDRESS", f"{url!r} is no address of a server: {error}") from error


def check(response: httpx.Response) -> httpx.Response:
    """The response, if it is not an error."""
    if response.status_code == 200:
        return response
    try:
        error = response.json()["error"]
    except (ValueError, KeyError, TypeError):  # Subscriptions and proxies say it in plain text.
        code = "INVALID_REQUEST" if response.status_code == 400 else f"HTTP_{response.status_code}"
        error = {"code": code, "message": response.text}
    # Without a code of the server it is a proxy's answer, and says nothing of the request.
    kind = Lost if response.status_code >= 500 else TrefoilError
    kind = ERRORS.get(error["code"], kind)
    raise kind(error["code"], error["message"], error.get("details"))


def result(response: httpx.Response) -> Json:
    """The result of a call."""
    try:
        return check(response).json()
    except ValueError as error:  # It broke off, or is not the server's.
        raise Lost("CONNECTION", "the response is not complete") from error


def lost(error: httpx.HTTPError) -> TrefoilError:
    """The error of a connection that could not be made, or broke."""
    text = str(error) or type(error).__name__
    if isinstance(error, httpx.ConnectError):
        return Unavailable(why_not_connected(error), text)
    if isinstance(error, (httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)):
        return Unavailable("CONNECTION", text)
    return Lost("CONNECTION", text)


def why_not_connected(error: BaseException | None) -> str:
    """The code of a connection that was not made. A peer that hangs up may be starting again."""
    while error is not None:
        if isinstance(error, socket.gaierror) and error.errno != socket.EAI_AGAIN:
            return "ADDRESS"
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
            return "TLS"
        error = error.__cause__ or error.__context__
    return "CONNECTION"


def event_of(line: str) -> Event | None:
    """The event of a line of server-sent events, if it has one."""
    return Event(*json.loads(line[6:])) if line.startswith("data: ") else None


def raise_if_hopeless(error: httpx.HTTPError | TrefoilError) -> None:
    """Raises the error of a subscription that would fail again however often it is opened."""
    told = lost(error) if isinstance(error, httpx.HTTPError) else error
    if told.code in HOPELESS:
        raise told from error
