// The published client redis (node-redis), unmodified, against this server.
//
// Usage: redis_client.js PORT TOKEN. Prints "ok" and the number of checks, or fails.

const assert = require("node:assert");
const { createClient } = require("redis");
const { port, password, equal, run } = require("./checks.js");

async function useIt(redis) {
  equal(await redis.ping(), "PONG");
  equal(await redis.set("k", "v", { EX: 100 }), "OK");
  equal(await redis.get("k"), "v");
  equal(await redis.hSet("h", { a: 1, b: "two" }), 2);
  equal({ ...(await redis.hGetAll("h")) }, { a: "1", b: "two" });
  equal(await redis.zAdd("z", [{ score: 1.5, value: "m" }]), 1);
  equal(await redis.zScore("z", "m"), 1.5);
  await assert.rejects(redis.incr("h"), /WRONGTYPE/);
}

// A transaction with a name takes effect once, and one that is strict takes back everything.
async function combine(redis, name) {
  const named = () =>
    redis
      .multi()
      .addCommand(["TREFOIL.COMMITID", name])
      .incr("n")
      .addCommand(["EVENT.APPEND", "order-1", "Ordered", '{"n":1}'])
      .exec();
  const first = await named();
  equal(first[0], "OK");
  equal(first[1], 1);
  equal(await named(), first);
  equal(await redis.get("n"), "1");
  const strict = redis
    .multi()
    .incr("n")
    .addCommand(["TREFOIL.STRICT", "ON"])
    .lPush("n", "x")
    .exec();
  await assert.rejects(strict, /EXECABORT.*command 2 failed: WRONGTYPE/);
  equal(await redis.get("n"), "1");
  // The next transaction is as in Redis again.
  await assert.rejects(redis.multi().incr("n").lPush("n", "x").exec(), /1 commands failed/);
  equal(await redis.get("n"), "2");
}

async function main() {
  for (const options of [{ RESP: 2 }, { RESP: 3 }]) {
    const redis = createClient({ socket: { port }, password, ...options });
    redis.on("error", () => {});
    await redis.connect();
    await redis.flushAll();
    await useIt(redis);
    await combine(redis, `order-${options.RESP}`);
    await redis.close();
  }
}

run(main);
