"""What must hold when the load is over: each namespace is read as a whole, over every protocol."""

import json
import time

from clients import Grpc, Http, Refused, Resp, Route, Unknown
from readers import decoded, key_of
from writers import fields

# How long a namespace may take until it answers, and a subscription until it has all events.
PATIENCE = 45


def check_all(load, spaces):
    for space in spaces:
        log = asked(load, space, Http, exported)
        check_log(load, space, log)
        over_grpc = asked(load, space, Grpc, read)
        # Holds may have ended meanwhile: there may be more events now.
        load.check(over_grpc[: len(log)] == log, f"{space.name}: gRPC has other events than HTTP")
        check_state(load, space, log)
        check_seats(load, space)
        check_followed(load, space, log)


def asked(load, space, kind, fetch):
    return answer(load, space, Route(load.nodes, kind, space.token, space.number, timeouts=(30,)), fetch)


def answer(load, space, route, fetch):
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return fetch(route.get())
        except (Refused, Unknown) as failure:
            load.check(time.monotonic() < until, f"{space.name}: no node answers: {failure}")
            route.elsewhere()


def exported(client):
    """The whole log, as pairs of a position and the key of the event there."""
    response = client.request("GET", "/export")
    lines = client.receive(response.read).splitlines()
    events = map(json.loads, lines)
    return [(event["gpos"], key_of(event.get("data"))) for event in events]


def read(client):
    events = client.call(lambda: list(client.client.read()))
    return [(event.position, key_of(decoded(event.event.data))) for event in events]


def check_log(load, space, log):
    positions = [position for position, _ in log]
    load.check(positions == list(range(1, len(log) + 1)), f"{space.name}: positions are not dense")
    found = {}
    for position, key in log:
        if key is not None:
            found.setdefault(key, []).append(position)
    for key, position in space.acknowledged.items():
        text = f"{space.name}: {key} was acknowledged at {position} and is at {found.get(key)}"
        load.check(found.get(key) == [position], text)
    for key in found.keys() - space.acknowledged.keys():
        load.check(key in space.unknown, f"{space.name}: {key} is there, and nobody wrote it")
        load.check(len(found[key]) == 1, f"{space.name}: {key} is there twice: {found[key]}")


def check_state(load, space, log):
    """The counter and the events of its transactions are one thing."""
    counted = sum(key is not None and key.startswith("resp-") for _, key in log)
    counter = int(asked(load, space, Resp, lambda client: client.call(lambda redis: redis.get("counter"))) or 0)
    load.check(counter == counted, f"{space.name}: the counter is {counter}, with {counted} events")
    load.check(counter >= space.least("counter"), f"{space.name}: the counter went back to {counter}")


def check_seats(load, space):
    route = Route(load.nodes, Resp, space.token, space.number, timeouts=(30,))

    def command(*words):
        return answer(load, space, route, lambda client: client.call(lambda redis: redis.execute_command(*words)))

    differences = command("SEATS.CHECK", "gala")
    load.check(differences == [], f"{space.name}: SEATS.CHECK says {differences}")
    taken = {}
    for booking, (end, seats) in list(space.bookings.items()):
        stored = fields(command("SEATS.BOOKING", booking))
        load.check(stored["seats"] == seats, f"{space.name}: {booking} has {stored['seats']}, not {seats}")
        if end in ("SOLD", "RELEASED"):
            load.check(stored["status"] == end, f"{space.name}: {booking} is {stored['status']}, not {end}")
        if stored["status"] == "SOLD":
            for seat in seats:
                text = f"{space.name}: {seat} was sold to {booking} and {taken.get(seat)}"
                load.check(seat not in taken, text)
                taken[seat] = booking
    stats = fields(command("SEATS.STATS", "gala", "A"))
    load.check(int(stats["sold"]) >= len(taken), f"{space.name}: sold {stats['sold']}, not {len(taken)}")


def check_followed(load, space, log):
    """Each subscription has the whole log, in its order. It may still be on its way."""
    until = time.monotonic() + PATIENCE
    for name, keys in space.followed.items():
        while len(keys) < len(log) and time.monotonic() < until:
            time.sleep(0.05)
        text = f"{space.name}: the subscription over {name} has {len(keys)} of {len(log)} events"
        load.check(len(keys) >= len(log), text)
        same = keys[: len(log)] == [key for _, key in log]
        load.check(same, f"{space.name}: the subscription over {name} has other events than the log")
