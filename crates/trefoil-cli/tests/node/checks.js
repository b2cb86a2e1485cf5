// What the scripts of this directory share: their arguments, and checks that are counted.

const assert = require("node:assert");

const [port, password] = process.argv.slice(2);
let count = 0;

function equal(actual, expected) {
  count += 1;
  assert.deepStrictEqual(actual, expected);
}

// Runs a script and prints "ok" and the number of its checks, or fails.
function run(main) {
  main().then(
    () => console.log("ok", count, "checks"),
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
}

module.exports = { port: Number(port), password, equal, run };
