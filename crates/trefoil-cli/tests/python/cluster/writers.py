"""The writers of one namespace: one for each protocol, and one that sells seats.

A write that was refused is sent again, to the next node, so that a refusal that was a lie shows as
an event that is there twice. One whose outcome is unknown is sent again only where the protocol
makes that safe: with an id and a condition over gRPC, and with the id of a booking.
"""

import json
import random
import time
import uuid

from clients import Broken, Grpc, Http, Refused, Resp, Route, Unknown
from umadb import AppendCondition, Event, Query, QueryItem

PAUSE = 0.02


def write_http(load, space):
    """Events of one stream."""

    def write(client, key):
        event = {"type": "Written", "data": {"key": key}}
        position = client.call("stream.write", "http-1", event)["globalPosition"]
        space.learn("stream", position)
        return position

    keep_writing(load, space, "http", Http, write)


def write_grpc(load, space):
    """An event with an id on condition that there is none with its key: safe to repeat."""
    idents = {}

    def write(client, key):
        ident = idents.setdefault(key, uuid.uuid4())
        event = Event("Appended", json.dumps({"key": key}).encode(), tags=[key], uuid=ident)
        condition = AppendCondition(Query([QueryItem(tags=[key])]))
        position = client.call(lambda: client.client.append([event], condition=condition))
        del idents[key]
        return position

    keep_writing(load, space, "grpc", Grpc, write, may_repeat=True)


def write_resp(load, space):
    """A counter and an event in one transaction."""

    def transact(redis, key):
        pipe = redis.pipeline()
        pipe.incr("counter")
        data = json.dumps({"key": key})
        pipe.execute_command("EVENT.APPEND", "resp-1", "Counted", data)
        counter, (position, _) = pipe.execute()
        space.learn("counter", counter)
        return position

    def write(client, key):
        return client.call(lambda redis: transact(redis, key))

    keep_writing(load, space, "resp", Resp, write)


def keep_writing(load, space, name, kind, write, may_repeat=False):
    route = Route(load.nodes, kind, space.token, space.number)
    number = 0
    while load.is_running():
        number += 1
        key = f"{name}-{number}"
        while load.is_running():
            try:
                position = write(route.get(), key)
            except Refused as refused:
                load.note(space, name, refused)
                route.elsewhere()
            except Unknown as unknown:
                load.note(space, name, unknown)
                route.elsewhere()
                if not may_repeat:
                    space.lose(key)
                    break
            else:
                space.acknowledge(name, key, position)
                break
        else:
            # The load ended before the outcome of this one was known.
            space.lose(key)
        time.sleep(PAUSE)


SECTION = ("SEATS.INIT", "gala", "A", "ROWS", 1000, "SEATS", 50)


def sell_seats(load, space):
    """Reserves seats and sells them, releases them, or lets the hold end."""
    route = Route(load.nodes, Resp, space.token, space.number)
    command(load, space, route, *SECTION)
    number, sold = 0, 0
    while load.is_running():
        number += 1
        booking, buyer = f"b{number}", f"buyer-{number % 7}"
        end = random.choice(["SOLD", "SOLD", "RELEASED", "HELD"])
        hold = ["HOLDMS", random.randint(100, 5000)] if end == "HELD" else []
        words = ["SEATS.RESERVE", "gala", "A", booking, buyer, "BEST", random.randint(1, 3), *hold]
        reply = command(load, space, route, *words)
        if reply is None:
            return
        space.bookings[booking] = (None, reply["seats"])
        if end != "HELD":
            name = "SEATS.FINALIZE" if end == "SOLD" else "SEATS.RELEASE"
            if command(load, space, route, name, booking, buyer) is None:
                return
        space.bookings[booking] = (end, reply["seats"])
        if end == "SOLD":
            sold += len(reply["seats"])
            space.learn("sold", sold)
        space.advance("seats")
        time.sleep(PAUSE)


def command(load, space, route, *words):
    """Sends a command, which may be repeated, until its outcome is known; None if the load ends."""
    while load.is_running():
        try:
            return route.get().call(lambda redis: fields(redis.execute_command(*words)))
        except (Refused, Unknown) as failure:
            load.note(space, "seats", failure)
            route.elsewhere()
    return None


def fields(reply):
    """A reply with names, as a dictionary in either version of the protocol."""
    if isinstance(reply, dict):
        return reply
    if not isinstance(reply, list) or len(reply) % 2:
        raise Broken(f"not a map: {reply!r}")
    return dict(zip(reply[::2], reply[1::2]))
