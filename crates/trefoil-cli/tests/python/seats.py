"""A ticketing system's storage specification, step by step, through the published client of Redis.

Seats are two bits each (0 available, 1 reserved, 2 sold) in one string per section; configuration
and statistics are hashes; metadata is one hash per row; a sorted set is the index of an event's
sections; every change is one transactional pipeline; a prefix keeps tests apart.

Usage: seats.py PORT TOKEN. Prints "ok" and the number of checks, or fails.
"""

import asyncio
import json
import sys
import time

import redis
import redis.asyncio
from checks import done, equal

PORT, TOKEN = int(sys.argv[1]), sys.argv[2]
AVAILABLE, RESERVED, SOLD = 0, 1, 2


class Section:
    """The keys of one section of an event, and where its seats are."""

    def __init__(self, prefix, event, section, rows, seats_per_row):
        name = f"{event}:{section}"
        self.event, self.name, self.rows, self.seats_per_row = event, section, rows, seats_per_row
        self.prefix = prefix
        self.seats = f"{prefix}seats_bf:{name}"
        self.config = f"{prefix}section_config:{name}"
        self.stats = f"{prefix}section_stats:{name}"
        self.index = f"{prefix}event_sections:{event}"

    def meta(self, row):
        return f"{self.prefix}seat_meta:{self.event}:{self.name}:{row}"

    def offset(self, row, seat):
        return (row - 1) * self.seats_per_row + (seat - 1)

    @property
    def total(self):
        return self.rows * self.seats_per_row

    def initialize(self, pipe):
        """Every seat is written as available: the string gets its full length."""
        for index in range(self.total):
            pipe.bitfield(self.seats).set("u2", f"#{index}", AVAILABLE).execute()
        pipe.hset(self.config, mapping={"rows": self.rows, "seats_per_row": self.seats_per_row})
        stats = {
            "section_id": self.name,
            "event_id": self.event,
            "available": self.total,
            "reserved": 0,
            "sold": 0,
            "total": self.total,
            "updated_at": int(time.time()),
        }
        pipe.hset(self.stats, mapping=stats)
        pipe.zadd(self.index, {self.name: 0})

    def put(self, pipe, row, seat, state):
        pipe.bitfield(self.seats).set("u2", f"#{self.offset(row, seat)}", state).execute()

    def reserve(self, pipe, row, seats, buyer):
        for seat in seats:
            self.put(pipe, row, seat, RESERVED)
            meta = {"buyer_id": buyer, "booking_id": f"b-{row}-{seat}", "price": 1200, "reserved_at": 1}
            pipe.hset(self.meta(row), seat, json.dumps(meta))
        pipe.hincrby(self.stats, "available", -len(seats))
        pipe.hincrby(self.stats, "reserved", len(seats))

    def finalize(self, pipe, row, seats):
        for seat in seats:
            self.put(pipe, row, seat, SOLD)
        pipe.hincrby(self.stats, "reserved", -len(seats))
        pipe.hincrby(self.stats, "sold", len(seats))

    def release(self, pipe, row, seats):
        for seat in seats:
            self.put(pipe, row, seat, AVAILABLE)
        pipe.hdel(self.meta(row), *seats)
        pipe.hincrby(self.stats, "available", len(seats))
        pipe.hincrby(self.stats, "reserved", -len(seats))


def decode(raw):
    """The states of all seats, from the bytes of a batch read: four seats a byte, from the left."""
    return [(byte >> shift) & 3 for byte in raw for shift in (6, 4, 2, 0)]


def counts(states):
    return [states.count(AVAILABLE), states.count(RESERVED), states.count(SOLD)]


def connect(module=redis, **options):
    return module.Redis(port=PORT, password=TOKEN, **options)


def test_sizes():
    """Two bits a seat: 100, 500 and 10,000 seats take 25, 125 and 2,500 bytes."""
    r = connect()
    for seats, size in ((100, 25), (500, 125), (10_000, 2_500)):
        section = Section("", 1, f"size-{seats}", seats // 20, 20)
        pipe = r.pipeline()
        section.initialize(pipe)
        pipe.execute()
        equal(r.strlen(section.seats), size)
        equal(decode(r.getrange(section.seats, 0, size - 1)), [AVAILABLE] * seats)
        equal(r.type(section.seats), b"string")


def test_life_of_seats():
    r = connect()
    section = Section("", 7, "A-1", 25, 20)
    pipe = r.pipeline()
    section.initialize(pipe)
    pipe.execute()
    pipe = r.pipeline()
    section.reserve(pipe, 2, [3, 4], buyer=42)
    equal(pipe.execute(), [[0], 1, [0], 1, 498, 2])
    # One seat, and the whole section in one read.
    equal(r.bitfield(section.seats).get("u2", f"#{section.offset(2, 3)}").execute(), [RESERVED])
    raw = r.getrange(section.seats, 0, -1)
    equal(len(raw), 125)
    equal([i for i, state in enumerate(decode(raw)) if state], [22, 23])
    # 22 * 2 = 44 bits: the bits of seat 22 are 44 and 45, of seat 23 are 46 and 47.
    equal([r.getbit(section.seats, bit) for bit in (44, 45, 46, 47)], [0, 1, 0, 1])
    row = json.loads(r.hget(section.meta(2), 3))
    equal((row["buyer_id"], row["booking_id"]), (42, "b-2-3"))

    pipe = r.pipeline()
    section.finalize(pipe, 2, [3])
    equal(pipe.execute(), [[RESERVED], 1, 1])
    pipe = r.pipeline()
    section.release(pipe, 2, [4])
    equal(pipe.execute(), [[RESERVED], 1, 499, 0])
    equal(r.hkeys(section.meta(2)), [b"3"])
    equal(counts(decode(r.getrange(section.seats, 0, -1))), [499, 0, 1])
    stats = r.hgetall(section.stats)
    equal([int(stats[name]) for name in (b"available", b"reserved", b"sold")], [499, 0, 1])
    # One row of 20 seats starts at a byte: five bytes a row.
    equal(decode(r.getrange(section.seats, 5, 9)), [0, 0, SOLD] + [0] * 17)


def test_listing():
    r = connect(decode_responses=True)
    for name in ("B-2", "A-1", "A-10", "A-2"):
        pipe = r.pipeline()
        Section("", 8, name, 1, 4).initialize(pipe)
        pipe.execute()
    names = r.zrange("event_sections:8", 0, -1)
    equal(names, ["A-1", "A-10", "A-2", "B-2"])
    equal(r.zcard("event_sections:8"), 4)
    pipe = r.pipeline()
    for name in names:
        pipe.hgetall(f"section_stats:8:{name}")
    all_stats = pipe.execute()
    equal([stats["available"] for stats in all_stats], ["4"] * 4)
    equal([stats["section_id"] for stats in all_stats], names)
    equal(r.hgetall("section_config:8:A-1"), {"rows": "1", "seats_per_row": "4"})


def test_prefixes():
    """Tests with different prefixes do not see one another, and clean up by prefix."""
    r = connect(decode_responses=True)
    for prefix in ("test_gw0_", "test_gw1_"):
        pipe = r.pipeline()
        section = Section(prefix, 1, "A-1", 1, 4)
        section.initialize(pipe)
        section.reserve(pipe, 1, [1], buyer=prefix)
        pipe.execute()
    equal(len(r.keys("test_gw0_*")), 5)
    equal(r.delete(*r.keys("test_gw0_*")), 5)
    equal(r.keys("test_gw0_*"), [])
    equal(r.hget("test_gw1_section_stats:1:A-1", "reserved"), "1")
    equal(json.loads(r.hget("test_gw1_seat_meta:1:A-1:1", 1))["buyer_id"], "test_gw1_")


async def test_asyncio():
    """Concurrent reservations of different seats: statistics and seats agree."""
    r = connect(redis.asyncio)
    section = Section("", 9, "A-1", 25, 20)
    pipe = r.pipeline()
    section.initialize(pipe)
    await pipe.execute()

    async def book(row):
        pipe = r.pipeline()
        section.reserve(pipe, row, [1, 2, 3, 4], buyer=row)
        await pipe.execute()
        pipe = r.pipeline()
        if row % 2:
            section.finalize(pipe, row, [1, 2, 3, 4])
        else:
            section.release(pipe, row, [1, 2])
        await pipe.execute()

    await asyncio.gather(*(book(row) for row in range(1, 26)))
    states = decode(await r.getrange(section.seats, 0, -1))
    stats = await r.hgetall(section.stats)
    equal(counts(states), [500 - 100 + 24, 24, 52])
    equal([int(stats[name]) for name in (b"available", b"reserved", b"sold")], counts(states))
    equal(await r.bitfield(section.seats).get("u2", "#0").execute(), [SOLD])
    await r.aclose()


connect().flushall()
for test in (test_sizes, test_life_of_seats, test_listing, test_prefixes):
    test()
asyncio.run(test_asyncio())
done()
