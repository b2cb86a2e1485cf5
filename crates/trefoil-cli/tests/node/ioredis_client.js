// The published client ioredis, unmodified, against this server.
//
// Usage: ioredis_client.js PORT TOKEN. Prints "ok" and the number of checks, or fails.

const assert = require("node:assert");
const Redis = require("ioredis");
const { port, password, equal, run } = require("./checks.js");

async function useIt(redis) {
  equal(await redis.ping(), "PONG");
  equal(await redis.set("k", "v", "EX", 100), "OK");
  equal(await redis.get("k"), "v");
  equal(await redis.getBuffer("k"), Buffer.from("v"));
  equal(await redis.hset("h", { a: 1, b: "two" }), 2);
  equal(await redis.hgetall("h"), { a: "1", b: "two" });
  equal(await redis.zadd("z", 1.5, "m", 2, "n"), 2);
  equal(await redis.zscore("z", "m"), "1.5");
  equal(await redis.zrange("z", 0, -1), ["m", "n"]);
  equal(await redis.sadd("s", "x", "y"), 2);
  equal(new Set(await redis.smembers("s")), new Set(["x", "y"]));
  equal(await redis.bitfield("bits", "SET", "u2", "#5", 2, "GET", "u2", "#5"), [0, 2]);
  equal(await redis.lpush("l", "a", "b"), 2);
  equal(await redis.lrange("l", 0, -1), ["b", "a"]);
  equal(await redis.get("missing"), null);
  await assert.rejects(redis.incr("h"), /WRONGTYPE/);
}

async function combine(redis) {
  equal(await redis.pipeline().set("p", 1).incr("p").get("p").exec(), [
    [null, "OK"],
    [null, 2],
    [null, "2"],
  ]);
  const mixed = await redis.multi().incr("p").lpush("p", "x").incr("p").exec();
  equal([mixed[0], mixed[2]], [
    [null, 3],
    [null, 4],
  ]);
  assert.match(String(mixed[1][0]), /WRONGTYPE/);
  const other = redis.duplicate();
  await redis.watch("p");
  await other.incr("p");
  equal(await redis.multi().set("p", 0).exec(), null);
  const appended = await redis
    .multi()
    .hincrby("stock", "left", -1)
    .call("EVENT.APPEND", "order-9", "Ordered", '{"n":1}')
    .exec();
  equal(appended[0], [null, -1]);
  equal(appended[1][1].length, 2);
  other.disconnect();
  const found = [];
  for await (const keys of redis.scanStream({ count: 2 })) found.push(...keys);
  equal(new Set(found), new Set(["k", "h", "z", "s", "bits", "l", "p", "stock"]));
  await Promise.all(Array.from({ length: 500 }, () => redis.incr("n")));
  equal(await redis.get("n"), "500");
}

async function main() {
  for (const options of [{}, { protocol: 2 }, { protocol: 3, db: 0, connectionName: "tester" }]) {
    const redis = new Redis({ port, password, ...options });
    await redis.flushall();
    await useIt(redis);
    await combine(redis);
    await redis.quit();
  }
  const wrong = new Redis({ port, password: "wrong", retryStrategy: null });
  const failure = await new Promise((resolve) => wrong.once("error", resolve));
  assert.match(String(failure), /WRONGPASS|NOAUTH|invalid/i);
  wrong.disconnect();
}

run(main);
