"""A client for Trefoil over HTTP: `Trefoil` blocks, `AsyncTrefoil` is for asyncio.

Every commit has an id, so it is safe to send it again: the server recognises it and returns the
first response. That is why the client may repeat a commit by itself when a connection breaks.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

import httpx

from . import _steps
from ._steps import (
    CommandFailed, Commit, Committed, Conflict, Event, InvalidRequest, Json, Lost, OutcomeUnknown,
    Query, Steps, T, TrefoilError, Unauthorized, Unavailable,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

Decide = Callable[[list[Event]], Commit | None | Awaitable[Commit | None]]
Apply = Callable[[Event], Commit | None | Awaitable[Commit | None]]

__all__ = [
    "AsyncTrefoil", "CommandFailed", "Commit", "Committed", "Conflict", "Event", "InvalidRequest",
    "Json", "OutcomeUnknown", "Query", "Trefoil", "TrefoilError", "Unauthorized", "Unavailable",
]


class _Settings:
    """What both clients are made with."""

    def __init__(
        self, url: str = "http://127.0.0.1:8080", token: str | None = None, *,
        retry_seconds: float = 30.0, silence_seconds: float = 45.0,
        verify: Any = True,
    ) -> None:
        """`retry_seconds` is how long a request that may be repeated is repeated. A subscription
        that is silent for `silence_seconds` is opened again. `verify` is that of httpx."""
        _steps.check_address(url)
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self._httpx: dict[str, Any] = {
            "base_url": url, "headers": headers, "timeout": silence_seconds, "verify": verify,
        }
        self._retry = retry_seconds

    @staticmethod
    def _subscription(query: Query, after: int) -> dict[str, Any]:
        return {
            "method": "GET", "url": "/events", "headers": {"last-event-id": str(after)},
            "params": {"query": json.dumps({"items": [], **query})},
        }


class Trefoil(_Settings):
    """A namespace of a Trefoil server. It may be used by several threads."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._client = httpx.Client(**self._httpx)

    def __enter__(self) -> Trefoil:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def call(self, method: str, *arguments: Json) -> Json:
        """Calls a method of the HTTP API once and returns its result. If no answer arrives, that is
        `OutcomeUnknown`, unless nothing was sent: then it is `Unavailable`."""
        try:
            response = self._client.post("/rpc", json=[method, *arguments])
        except httpx.HTTPError as error:
            raise _steps.lost(error) from error
        return _steps.result(response)

    def _step(self, step: _steps.Step) -> Any:
        if isinstance(step, _steps.Call):
            return self.call(step.method, *step.arguments)
        if isinstance(step, _steps.Pause):
            return time.sleep(step.seconds)
        return step.function(step.argument)

    def _run(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    result = self._step(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as stop:
            value: T = stop.value
            return value

    def commit(self, **commit: Unpack[Commit]) -> Committed:
        """Checks the conditions, appends the events and runs the state commands, all or nothing.
        When it returns, everything is on disk. It is sent again if the connection breaks."""
        return self._run(_steps.commit(self._retry, commit))

    def decide(
        self, query: Query, decide: Callable[[list[Event]], Commit | None], attempts: int = 10
    ) -> Committed | None:
        """Reads the events that match, lets `decide` make a commit of them, and commits it on
        condition that nothing new matches. After a conflict it starts again."""
        return self._run(_steps.decide(self._retry, query, decide, attempts))

    def query(self, query: Query, *, after: int = 0) -> tuple[list[Event], int]:
        """Returns all events that match and the head of the log, up to which that is so."""
        return self._run(_steps.find(self._retry, query, {"after": after}))

    def read(
        self, query: Query, *, after: int | None = None, backwards: bool = False
    ) -> Iterator[Event]:
        """Reads the events that match, a page at a time. `after` continues an earlier read."""
        is_last = False
        while not is_last:
            events, is_last = self._run(_steps.page(self._retry, query, after, backwards))
            yield from events
            after = events[-1].global_position if events else after

    def subscribe(self, query: Query, *, after: int = 0) -> Iterator[Event]:
        """Follows the events that match, from `after` into the future. It connects again by itself
        and continues where it was, without gaps or repetitions. It ends when the client is closed."""
        pause = _steps.FIRST_PAUSE
        while not self._client.is_closed:
            try:
                with self._client.stream(**self._subscription(query, after)) as response:
                    if response.status_code != 200:
                        response.read()
                    for line in _steps.check(response).iter_lines():
                        if event := _steps.event_of(line):
                            yield event
                            after, pause = event.global_position, _steps.FIRST_PAUSE
            except (httpx.HTTPError, Lost, Unavailable) as error:
                _steps.raise_if_hopeless(error)
            time.sleep(pause)
            pause = min(2 * pause, _steps.PAUSE_MAX)

    def project(self, name: str, query: Query, apply: Callable[[Event], Commit | None]) -> None:
        """Keeps a projection up to date: `apply` makes a commit (or None) of each event that
        matches. The position is kept in the same commit, so each event takes effect once, whatever
        breaks, and also if several processes run the same projection."""
        after = self._run(_steps.repeat(self._retry, "events.tracking", name)) or 0
        for event in self.subscribe(query, after=after):
            self._run(_steps.project(self._retry, name, event, apply))

    def state(self, *command: Json) -> Json:
        """Runs one state command and returns its reply."""
        return self.commit(state=[command])["state"][0]


class AsyncTrefoil(_Settings):
    """The same for asyncio. The functions of `decide` and `project` may be coroutine functions."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._client = httpx.AsyncClient(**self._httpx)

    async def __aenter__(self) -> AsyncTrefoil:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._client.aclose()

    async def call(self, method: str, *arguments: Json) -> Json:
        try:
            response = await self._client.post("/rpc", json=[method, *arguments])
        except httpx.HTTPError as error:
            raise _steps.lost(error) from error
        return _steps.result(response)

    async def _step(self, step: _steps.Step) -> Any:
        if isinstance(step, _steps.Call):
            return await self.call(step.method, *step.arguments)
        if isinstance(step, _steps.Pause):
            return await asyncio.sleep(step.seconds)
        result = step.function(step.argument)
        return await result if inspect.isawaitable(result) else result

    async def _run(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    result = await self._step(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as stop:
            value: T = stop.value
            return value

    async def commit(self, **commit: Unpack[Commit]) -> Committed:
        return await self._run(_steps.commit(self._retry, commit))

    async def decide(self, query: Query, decide: Decide, attempts: int = 10) -> Committed | None:
        return await self._run(_steps.decide(self._retry, query, decide, attempts))

    async def query(self, query: Query, *, after: int = 0) -> tuple[list[Event], int]:
        return await self._run(_steps.find(self._retry, query, {"after": after}))

    async def read(
        self, query: Query, *, after: int | None = None, backwards: bool = False
    ) -> AsyncIterator[Event]:
        is_last = False
        while not is_last:
            events, is_last = await self._run(_steps.page(self._retry, query, after, backwards))
            for event in events:
                yield event
            after = events[-1].global_position if events else after

    async def subscribe(self, query: Query, *, after: int = 0) -> AsyncIterator[Event]:
        pause = _steps.FIRST_PAUSE
        while not self._client.is_closed:
            try:
                async with self._client.stream(**self._subscription(query, after)) as response:
                    if response.status_code != 200:
                        await response.aread()
                    async for line in _steps.check(response).aiter_lines():
                        if event := _steps.event_of(line):
                            yield event
                            after, pause = event.global_position, _steps.FIRST_PAUSE
            except (httpx.HTTPError, Lost, Unavailable) as error:
                _steps.raise_if_hopeless(error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _steps.PAUSE_MAX)

    async def project(self, name: str, query: Query, apply: Apply) -> None:
        after = await self._run(_steps.repeat(self._retry, "events.tracking", name)) or 0
        async for event in self.subscribe(query, after=after):
            await self._run(_steps.project(self._retry, name, event, apply))

    async def state(self, *command: Json) -> Json:
        return (await self.commit(state=[command]))["state"][0]
