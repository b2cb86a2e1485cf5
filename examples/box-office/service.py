"""The web service: HTTP in front of the box office. It keeps nothing, so any number may run."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from aiohttp import ClientError, ClientSession, ClientTimeout, web
from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from box_office import BoxOffice
from buyers import Crowd

PAGE = Path(__file__).parent / "page"
# The well-known token of `trefoil dev`.
TOKEN = f"ns_ZGVmYXVsdA_{'0' * 64}"


class Service:
    def __init__(self, trefoil: str, resp_port: int, token: str):
        self.events_url = f"{trefoil}/events"
        self.token = token
        self.redis = Redis(port=resp_port, password=token, protocol=3, decode_responses=True)
        self.office = BoxOffice(self.redis)
        self.crowd = Crowd(self.office)

    async def run(self, app: web.Application):
        """What is there while the service runs."""
        async with self.redis, session() as self.http:
            await self.office.open()
            yield
            self.crowd.want(0)

    async def index(self, _request: web.Request) -> web.StreamResponse:
        return web.FileResponse(PAGE / "index.html")

    async def show(self, request: web.Request) -> web.Response:
        return web.json_response(await self.office.snapshot(request.query["buyer"]))

    async def feed(self, request: web.Request) -> web.StreamResponse:
        """Trefoil's events of the show, byte for byte.

        A browser that was away says which event it saw last, and Trefoil goes on after it: nothing
        is missed and nothing comes twice, and there is nothing to remember here.
        """
        headers = {"Authorization": f"Bearer {self.token}"}
        if "Last-Event-ID" in request.headers:
            headers["Last-Event-ID"] = request.headers["Last-Event-ID"]
        wanted = {"tag": f"event:{request.query['show']}", "position": request.query["position"]}
        answer = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        while not answer.prepared:
            try:
                async with self.http.get(self.events_url, params=wanted, headers=headers) as events:
                    await answer.prepare(request)
                    async for chunk in events.content.iter_any():
                        await answer.write(chunk)
            except (ClientError, ConnectionError):
                # Trefoil has gone. The browser waits here for it, or asks again.
                await asyncio.sleep(0.2)
        return answer

    async def reserve(self, request: web.Request) -> web.Response:
        asked = await request.json()
        return web.json_response(
            await self.office.reserve(
                asked["section"], asked["booking"], asked["buyer"], asked["wanted"]
            )
        )

    async def finalize(self, request: web.Request) -> web.Response:
        asked = await request.json()
        return web.json_response(await self.office.finalize(asked["booking"], asked["buyer"]))

    async def release(self, request: web.Request) -> web.Response:
        asked = await request.json()
        return web.json_response(await self.office.release(asked["booking"], asked["buyer"]))

    async def next_show(self, _request: web.Request) -> web.Response:
        self.crowd.want(0)
        self.crowd.forget()
        await self.office.open_next()
        return web.json_response({"show": self.office.show})

    async def set_buyers(self, request: web.Request) -> web.Response:
        self.crowd.want(int((await request.json())["wanted"]))
        return web.json_response(self.crowd.report())

    async def buyers(self, _request: web.Request) -> web.Response:
        return web.json_response(self.crowd.report())


def session() -> ClientSession:
    return ClientSession(timeout=ClientTimeout(total=None), raise_for_status=True)


@web.middleware
async def errors(request: web.Request, handler) -> web.StreamResponse:
    """Says what Trefoil says: the first word of a refusal is its code."""
    try:
        return await handler(request)
    except (KeyError, TypeError, ValueError) as error:
        return web.json_response({"error": f"BADREQUEST {error!r}"}, status=400)
    except ResponseError as error:
        return web.json_response({"error": str(error)}, status=409)
    except RedisError as error:
        return web.json_response({"error": f"UNAVAILABLE {error}"}, status=503)


def application(service: Service) -> web.Application:
    app = web.Application(middlewares=[errors])
    app.cleanup_ctx.append(service.run)
    app.add_routes([
        web.get("/", service.index),
        web.get("/api/show", service.show),
        web.get("/api/feed", service.feed),
        web.post("/api/reserve", service.reserve),
        web.post("/api/finalize", service.finalize),
        web.post("/api/release", service.release),
        web.post("/api/next-show", service.next_show),
        web.get("/api/buyers", service.buyers),
        web.post("/api/buyers", service.set_buyers),
        web.static("/", PAGE),
    ])  # fmt: skip
    return app


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000, help="port of the page")
    parser.add_argument("--trefoil", default="http://127.0.0.1:8080", help="Trefoil over HTTP")
    parser.add_argument("--resp-port", type=int, default=6666, help="Trefoil's port for RESP")
    given = parser.parse_args()
    token = os.environ.get("TREFOIL_TOKEN", TOKEN)
    service = Service(given.trefoil, given.resp_port, token)
    try:
        # A browser that leaves ends its feed; nobody waits for those that stay.
        web.run_app(
            application(service), host="127.0.0.1", port=given.port, print=None,
            handler_cancellation=True, shutdown_timeout=1,
        )  # fmt: skip
    except (OSError, RedisError) as error:
        sys.exit(f"cannot open the box office: {error}")


if __name__ == "__main__":
    main()
