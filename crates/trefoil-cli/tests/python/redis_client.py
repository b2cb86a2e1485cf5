"""The published client of Redis (package redis, unmodified) against this server.

Usage: redis_client.py PORT TOKEN PROTOCOL. Prints "ok" and the number of checks, or fails. The
namespace must have no keys.
"""

import asyncio
import sys
import threading

import redis
import redis.asyncio
from checks import check, done, equal, refused

PORT, TOKEN, PROTOCOL = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])


def connect(module=redis, **options):
    return module.Redis(port=PORT, password=TOKEN, protocol=PROTOCOL, **options)


def test_connecting():
    equal(connect().ping(), True)
    named = connect(client_name="tester", decode_responses=True)
    equal(named.client_getname(), "tester")
    check(named.client_id() > 0)
    check("redis_version" in named.info(), "INFO is parsed")
    check("save" in named.config_get("save"))
    wrong = redis.Redis(port=PORT, password="wrong", protocol=PROTOCOL)
    refused(redis.exceptions.AuthenticationError, "", wrong.ping)
    nobody = redis.Redis(port=PORT, protocol=PROTOCOL)
    refused(redis.exceptions.AuthenticationError, "", lambda: nobody.get("k"))
    refused(redis.exceptions.ResponseError, "", connect(db=3).ping)
    url = f"redis://default:{TOKEN}@127.0.0.1:{PORT}/0?protocol={PROTOCOL}"
    equal(redis.Redis.from_url(url).echo("hello"), b"hello")


def test_strings():
    r = connect()
    equal(r.set("text", "päckchen"), True)
    equal(r.get("text"), "päckchen".encode())
    equal(r.set("text", "other", nx=True), None)
    equal(r.set("text", "other", xx=True, get=True), "päckchen".encode())
    binary = bytes(range(256))
    r.set("binary", binary)
    equal(r.get("binary"), binary)
    equal(r.getrange("binary", 250, -1), binary[250:])
    equal(r.mset({"a": 1, "b": 2}), True)
    equal(r.mget("a", "b", "missing"), [b"1", b"2", None])
    equal((r.incr("n"), r.incrby("n", 9), r.decr("n")), (1, 10, 9))
    equal(r.incrbyfloat("f", 1.5), 1.5)
    equal(r.set("short", "x", px=100_000), True)
    check(90 < r.ttl("short") <= 100)
    equal((r.persist("short"), r.ttl("short")), (True, -1))
    equal(r.setbit("bits", 7, 1), 0)
    equal((r.getbit("bits", 7), r.bitcount("bits")), (1, 1))
    equal(r.bitfield("bf").set("u2", "#3", 2).get("u2", "#3").execute(), [0, 2])
    equal(connect(decode_responses=True).get("text"), "other")


def test_collections():
    r = connect(decode_responses=True)
    equal(r.hset("h", mapping={"a": "1", "b": "2"}), 2)
    equal(r.hgetall("h"), {"a": "1", "b": "2"})
    equal((r.hincrby("h", "a", 4), r.hincrbyfloat("h", "f", 0.25)), (5, 0.25))
    equal(dict(r.hscan_iter("h")), {"a": "5", "b": "2", "f": "0.25"})
    equal(r.sadd("s", "x", "y", "z"), 3)
    equal(set(r.smembers("s")), {"x", "y", "z"})
    equal(set(r.sscan_iter("s")), {"x", "y", "z"})
    check(r.srandmember("s") in {"x", "y", "z"})
    equal(r.zadd("z", {"one": 1, "two": 2, "half": 0.5}), 3)
    equal(r.zrange("z", 0, -1), ["half", "one", "two"])
    scores = r.zrange("z", 0, -1, withscores=True)
    equal([tuple(row) for row in scores], [("half", 0.5), ("one", 1.0), ("two", 2.0)])
    equal((r.zscore("z", "half"), r.zrank("z", "two"), r.zincrby("z", 2, "one")), (0.5, 2, 3.0))
    equal({name for name, _ in r.zscan_iter("z")}, {"half", "one", "two"})
    equal(r.rpush("l", "a", "b", "c"), 3)
    equal((r.lrange("l", 0, -1), r.lpop("l"), r.llen("l")), (["a", "b", "c"], "a", 2))
    equal(r.sort("l", alpha=True, desc=True), ["c", "b"])
    refused(redis.exceptions.ResponseError, "WRONGTYPE", lambda: r.incr("h"))
    names = {"h", "s", "z", "l"}
    check(names <= set(r.scan_iter(count=3)), "SCAN finds every key")
    equal((r.type("z"), r.exists("h", "s", "no")), ("zset", 2))
    equal(r.delete(*names), 4)


def test_pipelines():
    r = connect()
    for is_transaction in (True, False):
        with r.pipeline(transaction=is_transaction) as pipe:
            pipe.set("p", 1).incr("p").hset("ph", "f", "v").hgetall("ph")
            equal(pipe.execute()[:2], [True, 2])
        with r.pipeline(transaction=is_transaction) as pipe:
            pipe.incr("p").lpush("p", "x").incr("p")
            answers = pipe.execute(raise_on_error=False)
        check(isinstance(answers[1], redis.exceptions.ResponseError), answers)
        equal((answers[0], answers[2]), (3, 4))
        r.delete("p", "ph")
    test_wishes(r)
    many = r.pipeline(transaction=False)
    for n in range(2_000):
        many.set(f"many:{n}", n)
    check(all(many.execute()), "2,000 pipelined writes")
    equal(len(r.keys("many:*")), 2_000)
    equal(r.delete(*r.keys("many:*")), 2_000)
    broken = r.pipeline()
    broken.execute_command("NOSUCHCOMMAND")
    refused(redis.exceptions.ResponseError, "unknown command", broken.execute)


def test_wishes(r):
    """A pipeline with a name takes effect once, and a strict one takes back everything."""

    def named():
        with r.pipeline() as pipe:
            pipe.execute_command("TREFOIL.COMMITID", f"order-{PROTOCOL}")
            pipe.incr("wish")
            pipe.execute_command("EVENT.APPEND", "order-1", "Ordered", "{}")
            return pipe.execute()

    first = named()
    equal(first[:2], [b"OK", 1])
    equal((named(), r.get("wish")), (first, b"1"))
    with r.pipeline() as pipe:
        pipe.incr("wish").execute_command("TREFOIL.STRICT", "ON")
        pipe.lpush("wish", "x")
        refused(redis.exceptions.ExecAbortError, "command 2 failed: WRONGTYPE", pipe.execute)
    equal(r.get("wish"), b"1")
    with r.pipeline() as pipe:
        answers = pipe.incr("wish").lpush("wish", "x").execute(raise_on_error=False)
    equal((answers[0], r.get("wish"), r.delete("wish")), (2, b"2", 1))


def test_watch():
    r = connect()
    r.set("counter", 0)

    def add_fifty():
        own = connect()
        for _ in range(50):
            own.transaction(lambda pipe: increase(pipe), "counter")

    def increase(pipe):
        value = int(pipe.get("counter"))
        pipe.multi()
        pipe.set("counter", value + 1)

    threads = [threading.Thread(target=add_fifty) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(r.get("counter"), b"200")
    with r.pipeline() as pipe:
        pipe.watch("counter")
        r.incr("counter")
        pipe.multi()
        pipe.set("counter", 0)
        refused(redis.exceptions.WatchError, "", pipe.execute)


async def test_asyncio():
    r = connect(redis.asyncio, decode_responses=True)
    equal(await r.set("async", "v"), True)
    async with r.pipeline(transaction=True) as pipe:
        answers = await pipe.get("async").incr("async:n").hset("async:h", "f", "1").execute()
    equal(answers, ["v", 1, 1])
    await asyncio.gather(*(r.incr("async:n") for _ in range(100)))
    equal(await r.get("async:n"), "101")
    equal([key async for key in r.scan_iter("async:?")] != [], True)
    async with r.pipeline() as pipe:
        await pipe.watch("async:n")
        await r.incr("async:n")
        pipe.multi()
        pipe.set("async:n", 0)
        try:
            await pipe.execute()
            check(False, "not refused")
        except redis.exceptions.WatchError:
            check(True)
    equal(await r.delete("async", "async:n", "async:h"), 3)
    await r.aclose()


def test_events():
    """Commands that the client does not know: state and event in one transaction."""
    r = connect(decode_responses=True)
    stream = f"order-{PROTOCOL}"
    pipe = r.pipeline()
    pipe.hincrby("stock", "left", -1)
    pipe.execute_command("EVENT.APPEND", stream, "Ordered", '{"n":1}', "TAG", "order:1")
    left, place = pipe.execute()
    equal((left, place[1]), (-1, 0))
    equal(r.execute_command("EVENT.VERSION", stream), 0)
    event = r.execute_command("EVENT.LAST", stream)
    check("Ordered" in str(event) and stream in str(event), event)


for test in (
    test_connecting,
    test_strings,
    test_collections,
    test_pipelines,
    test_watch,
    test_events,
):
    connect().flushall()
    test()
asyncio.run(test_asyncio())
done("with", redis.__version__, "in RESP", PROTOCOL)
