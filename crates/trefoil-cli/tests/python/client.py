"""A client of the EventoDB API that knows nothing of this server: the standard library only, and
server-sent events parsed the way the SDKs parse them.

Usage: client.py URL ADMIN_TOKEN. Prints "ok" and the number of checks, or fails.
"""

import json
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

from checks import check, done

URL, ADMIN = sys.argv[1], sys.argv[2]


class EventoError(Exception):
    def __init__(self, status, code, message, details):
        super().__init__(f"{status} {code}: {message}")
        self.status, self.code, self.message, self.details = status, code, message, details


class Client:
    """One call is one POST of a JSON array; an error is an object in the body."""

    def __init__(self, token=None):
        self.token = token

    def call(self, method, *arguments):
        request = urllib.request.Request(
            URL + "/rpc",
            data=json.dumps([method, *arguments]).encode(),
            headers={"Content-Type": "application/json"},
            method="POST",
        )
        if self.token:
            request.add_header("Authorization", "Bearer " + self.token)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                check(answer.headers["Content-Type"] == "application/json", answer.headers)
                if self.token is None and answer.headers["X-EventoDB-Token"]:
                    self.token = answer.headers["X-EventoDB-Token"]
                return json.loads(answer.read())
        except urllib.error.HTTPError as refused:
            error = json.loads(refused.read())["error"]
            raise EventoError(
                refused.code, error["code"], error["message"], error.get("details")
            ) from None

    def refused(self, *call):
        try:
            self.call(*call)
        except EventoError as error:
            return error
        raise AssertionError(("not refused", call))


class Subscription(threading.Thread):
    """Splits the body at blank lines, as the Elixir SDK does: an empty block never ends."""

    def __init__(self, token, **query):
        super().__init__(daemon=True)
        query = urllib.parse.urlencode({**query, "token": token})
        self.answer = urllib.request.urlopen(f"{URL}/subscribe?{query}", timeout=30)
        check(self.answer.headers["Content-Type"] == "text/event-stream")
        self.ready, self.pokes = threading.Event(), []
        self.changed = threading.Condition()
        self.start()
        check(self.ready.wait(10), "no ': ready'")

    def run(self):
        buffer = b""
        try:
            while chunk := self.answer.read1(65536):
                buffer += chunk
                while b"\n\n" in buffer:
                    block, buffer = buffer.split(b"\n\n", 1)
                    self.block(block.decode())
        except (OSError, ValueError, AttributeError):
            pass

    def block(self, block):
        assert block and not block.startswith("\n"), "an empty block"
        if block.startswith(":"):
            if "ready" in block:
                self.ready.set()
            return
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        assert fields["event"] == "poke", block
        with self.changed:
            self.pokes.append(json.loads(fields["data"]))
            self.changed.notify_all()

    def wait_for(self, count):
        with self.changed:
            arrived = self.changed.wait_for(lambda: len(self.pokes) >= count, 15)
        check(arrived, "pokes", self.pokes)
        return self.pokes


def write_and_read(client):
    stream = f"account-{uuid.uuid4()}"
    check(client.call("stream.version", stream) is None)
    message_id = str(uuid.uuid4())
    metadata = {"correlationStreamName": "workflow-1"}
    first = {"type": "Deposited", "data": {"amount": 100, "text": "Grüße 世界"}, "metadata": metadata}
    written = client.call("stream.write", stream, first, {"id": message_id, "expectedVersion": -1})
    check(set(written) == {"position", "globalPosition"}, written)
    check(written["position"] == 0)
    client.call("stream.write", stream, {"type": "Withdrawn", "data": {}})
    rows = client.call("stream.get", stream, {"position": 0, "batchSize": 10})
    check(len(rows) == 2 and all(len(row) == 7 for row in rows), rows)
    check(rows[0][:2] == [message_id, "Deposited"] and rows[0][4:6] == [first["data"], metadata])
    check(rows[1][2] == 1 and rows[1][5] is None and rows[1][6].endswith("Z"))
    check(client.call("stream.last", stream, {"type": "Deposited"})[0] == message_id)
    check(client.call("stream.version", stream) == 1)
    rows = client.call("category.get", "account", {"correlation": "workflow"})
    check([row[0] for row in rows] == [message_id] and len(rows[0]) == 8 and rows[0][1] == stream)


def conflict(client):
    client.call("stream.write", "race-1", {"type": "E", "data": {}})
    error = client.refused("stream.write", "race-1", {"type": "E", "data": {}}, {"expectedVersion": 5})
    check((error.status, error.code) == (409, "STREAM_VERSION_CONFLICT"), error)
    check((error.details["expected"], error.details["actual"]) == (5, 0), error.details)
    check(error.message == "Expected version 5, stream is at version 0", error.message)
    check(client.refused("no.such").code == "METHOD_NOT_FOUND")


def subscriptions(client):
    live = Subscription(client.token, category="feed")
    everything = Subscription(client.token, all="true")
    members = [Subscription(client.token, category="feed", consumer=m, size=2) for m in (0, 1)]
    for number in range(1, 5):
        client.call("stream.write", f"feed-{number}", {"type": "E", "data": {}})
    for subscription in (live, everything):
        pokes = subscription.wait_for(4)
        check([poke["stream"] for poke in pokes] == [f"feed-{n}" for n in range(1, 5)], pokes)
        check(all(set(poke) == {"stream", "position", "globalPosition"} for poke in pokes))
    check([poke["stream"] for poke in members[0].wait_for(2)] == ["feed-1", "feed-3"])
    check([poke["stream"] for poke in members[1].wait_for(2)] == ["feed-2", "feed-4"])
    for _ in range(3):
        client.call("stream.write", "feed-1", {"type": "E", "data": {}})
    replay = Subscription(client.token, stream="feed-1", position=2)
    check([poke["position"] for poke in replay.wait_for(2)] == [2, 3])


def namespaces(admin):
    name = f"python-{int(time.time() * 1000)}"
    created = admin.call("ns.create", name, {"description": "from Python"})
    check(created["token"].startswith("ns_") and created["namespace"] == name)
    own = Client(created["token"])
    write_and_read(own)
    conflict(own)
    subscriptions(own)
    info = own.call("ns.info", name)
    check(info["messageCount"] == 10 and info["streamCount"] == 6, info)
    streams = own.call("ns.streams", {"prefix": "feed-", "limit": 3})
    check([stream["stream"] for stream in streams] == ["feed-1", "feed-2", "feed-3"], streams)
    categories = {row["category"]: row["messageCount"] for row in own.call("ns.categories")}
    check(categories == {"account": 2, "feed": 7, "race": 1}, categories)
    check(own.refused("ns.delete", "default").code == "AUTH_UNAUTHORIZED")
    check(name in [entry["namespace"] for entry in admin.call("ns.list")])
    check(admin.call("ns.delete", name)["messagesDeleted"] == 10)
    check(own.refused("stream.get", "race-1").code == "AUTH_UNAUTHORIZED")


def without_token():
    error = Client().refused("stream.get", "a-1")
    check((error.status, error.code) == (401, "AUTH_REQUIRED"), error)
    error = Client("invalid-token").refused("stream.get", "a-1")
    check((error.status, error.code) == (401, "AUTH_INVALID_TOKEN"), error)


admin = Client(ADMIN)
check(admin.call("sys.health")["status"] == "ok")
check(admin.call("sys.version").count(".") >= 2)
without_token()
namespaces(admin)
done()
