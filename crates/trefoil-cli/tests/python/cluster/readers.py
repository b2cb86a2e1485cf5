"""The readers of one namespace: none sees less than was acknowledged, or read, before it began.

There is one for each protocol and each node, so that a node that lost the namespace is asked too.
Some wait long for an answer: their request lies in the socket of a node that is stopped, and is
answered when it wakes up.
"""

import json
import time

from clients import Grpc, Http, Refused, Resp, Route, Unknown
from writers import fields

PAUSE = 0.1
TIMEOUTS = (0.3, 1, 3, 20)
# How long a node may take until it answers, when all is well.
PATIENCE = 45


def last_of_stream(client):
    event = client.call("stream.last", "http-1")
    return event[3] if event else 0


def counter(client):
    return int(client.call(lambda redis: redis.get("counter")) or 0)


def sold(client):
    return int(client.call(lambda redis: fields(redis.execute_command("SEATS.STATS", "gala", "A")))["sold"])


def head(client):
    return client.call(client.client.head) or 0


# Protocols over which any node answers for any namespace.
ANYWHERE = [Http, Grpc, Resp]

READERS = [
    ("stream", Http, last_of_stream),
    ("counter", Resp, counter),
    ("head", Grpc, head),
    ("sold", Resp, sold),
]


def keep_reading(load, space, node, kind, client, fetch):
    route = Route(load.nodes, client, space.token, node, TIMEOUTS)
    while load.is_running():
        # What is known before the request is sent: a connection may be made for it.
        least = space.least(kind)
        if kind == "sold" and not least:
            # The section may not be there yet.
            time.sleep(PAUSE)
            continue
        try:
            value = fetch(route.get())
        except (Refused, Unknown):
            route.drop()
        else:
            load.check(value >= least, f"{space.name}: node {node} answers {kind} {value} after {least}")
            space.learn(kind, value)
        time.sleep(PAUSE)


def check_every_node(load, space):
    """When all is well, every node answers, whoever has the namespace."""
    for node in range(len(load.nodes.all())):
        for kind, client, fetch in READERS:
            if client in ANYWHERE:
                least = space.least(kind)
                value = patiently(load, space, node, client, fetch)
                load.check(value >= least, f"{space.name}: node {node} answers {kind} {value} after {least}")


def patiently(load, space, node, client, fetch):
    """A request to a store that was killed may hang until it is given up, and others wait for it."""
    route = Route(load.nodes, client, space.token, node, timeouts=(40,))
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return fetch(route.get())
        except (Refused, Unknown) as failure:
            text = f"{space.name}: node {node} does not answer: {failure}"
            load.check(time.monotonic() < until, text)
            route.drop()
            time.sleep(PAUSE)


def follow_http(load, space):
    """Server-sent events from the first one on, continued where they broke off."""

    def events(client, position):
        response = client.request("GET", f"/events?all=true&position={position + 1}")
        while True:
            line = client.receive(response.readline)
            if not line:
                raise Unknown("the stream ended")
            if line.startswith(b"data: "):
                event = json.loads(line[6:])
                yield event[4], key_of(event[5])

    keep_following(load, space, "http", Http, events)


def follow_grpc(load, space):
    def events(client, position):
        subscription = client.call(lambda: client.client.subscribe(after=position))
        load.on_end(subscription.cancel)
        while True:
            try:
                event = client.call(lambda: next(subscription))
            except StopIteration:
                raise Unknown("the stream ended") from None
            yield event.position, key_of(decoded(event.event.data))

    keep_following(load, space, "grpc", Grpc, events)


def keep_following(load, space, name, kind, events):
    route = Route(load.nodes, kind, space.token, space.number + 1, timeouts=(20,))
    keys = space.followed.setdefault(name, [])
    while load.is_following():
        try:
            for position, key in events(route.get(), len(keys)):
                expected = len(keys) + 1
                text = f"{space.name}: a subscription over {name} has {position}, not {expected}"
                load.check(position == expected, text)
                keys.append(key)
        except (Refused, Unknown) as failure:
            load.note(space, f"subscription {name}", failure)
            route.elsewhere()


def decoded(data):
    try:
        return json.loads(bytes(data))
    except ValueError:
        return None


def key_of(data):
    """The key of an event that a writer of this test has written."""
    return data.get("key") if isinstance(data, dict) else None
