"""Both clients against a real server, which is killed meanwhile. TREFOIL_BINARY names it."""

import asyncio
import http.server
import json
import threading
import time
import unittest
from unittest import mock
import uuid

from server import TOKEN, Server
from trefoil_client import (
    AsyncTrefoil, CommandFailed, Conflict, InvalidRequest, OutcomeUnknown, Trefoil, TrefoilError,
    Unauthorized, Unavailable,
)

WRITERS, KILLS = 3, 4


def tagged(*tags):
    return {"items": [{"tags": list(tags)}]}


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        self.db = Trefoil(self.server.url, TOKEN)
        self.addCleanup(self.db.close)
        self.tag = f"test:{uuid.uuid4()}"

    def event(self, n, **more):
        return {"type": "Numbered", "data": {"n": n}, "tags": [self.tag], **more}

    def test_a_commit_checks_appends_and_changes_together(self):
        stream, key = f"order-{uuid.uuid4()}", f"key:{self.tag}"
        committed = self.db.commit(
            conditions=[{"stream": stream, "expectedVersion": -1}, {"key": key, "exists": False}],
            events=[self.event(1, stream=stream, metadata={"by": "Ada"})],
            state=[["SET", key, "yes"], ["HSET", f"h:{key}", "a", 1]],
        )
        self.assertEqual(committed["state"], ["OK", 1])
        [event], head = self.db.query(tagged(self.tag))
        self.assertEqual((event.stream, event.type, event.position), (stream, "Numbered", 0))
        self.assertEqual((event.data, event.metadata), ({"n": 1}, {"by": "Ada"}))
        self.assertEqual(event.global_position, committed["globalPosition"])
        self.assertGreaterEqual(head, event.global_position)
        self.assertEqual(self.db.state("HGETALL", f"h:{key}"), {"a": "1"})
        with self.assertRaises(Conflict) as refused:
            self.db.commit(conditions=[{"key": key, "exists": False}], events=[self.event(2)])
        self.assertEqual(refused.exception.code, "GUARD_FAILED")
        self.assertEqual(refused.exception.details["place"], "conditions[0]")
        self.assertEqual(len(self.db.query(tagged(self.tag))[0]), 1)

    def test_errors_are_types(self):
        with self.assertRaises(CommandFailed):
            self.db.commit(state=[["SET", self.tag, "x"], ["INCR", self.tag]])
        with self.assertRaises(InvalidRequest):
            self.db.commit(conditons=[])
        with self.assertRaises(InvalidRequest):
            next(self.db.subscribe({"itmes": []}))
        with self.assertRaises(Unauthorized), Trefoil(self.server.url, "ns_wrong") as stranger:
            stranger.state("GET", "k")
        nobody = Trefoil("http://127.0.0.1:9", TOKEN, retry_seconds=0.1)
        self.addCleanup(nobody.close)
        with self.assertRaises(Unavailable):
            nobody.query({})
        with self.assertRaises(Unavailable):  # Nothing was sent.
            nobody.commit(events=[self.event(1)])
        with self.assertRaises(TrefoilError) as refused:
            self.db.call("ns.info", "nobody")
        self.assertEqual(refused.exception.code, "NAMESPACE_NOT_FOUND")

    def answering(self, answers):
        """The address of what answers like this, and the ids of the commits that it was sent."""
        ids = []

        class Node(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                _, commit = json.loads(self.rfile.read(int(self.headers["content-length"])))
                ids.append(commit.get("id"))
                status, body, n_missing = answers.pop(0)
                self.send_response(status)
                self.send_header("content-length", str(len(body) + n_missing))
                self.end_headers()
                self.wfile.write(body.encode())
                self.close_connection = True

            def log_message(self, *_):
                pass

        node = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Node)
        self.addCleanup(node.server_close)
        self.addCleanup(node.shutdown)
        threading.Thread(target=node.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{node.server_port}", ids

    def test_what_has_done_nothing_is_sent_again(self):
        def refusal(status, code):
            return status, json.dumps({"error": {"code": code, "message": "text"}}), 0

        answers = [refusal(421, "WRONG_NODE"), refusal(503, "CLOSED"), (200, '{"commit": 1}', 0)]
        answers += [refusal(500, "OUTCOME_UNKNOWN"), refusal(500, "INTERNAL_ERROR")]
        url, ids = self.answering(answers)
        with Trefoil(url, TOKEN) as cluster:
            self.assertEqual(cluster.commit(events=[self.event(1)]), {"commit": 1})
            self.assertEqual(len(answers), 2)
            for _ in range(2):
                with self.assertRaises(OutcomeUnknown):  # It is for the caller to decide.
                    cluster.commit(events=[self.event(1)])
        self.assertEqual(answers, [])
        self.assertEqual(len(set(ids)), 3)

    def test_what_may_have_been_done_is_sent_again_with_its_id_only(self):
        done = (200, '{"commit": 1}', 0)
        lost = [(502, "<html>", 0), (503, "busy", 0), (504, "", 0)]
        lost += [(200, '{"commit"', 20), (200, '{"commit"', 0)]
        url, ids = self.answering([*lost, done])
        with Trefoil(url, TOKEN) as proxied:
            self.assertEqual(proxied.commit(events=[self.event(1)]), {"commit": 1})
            self.assertEqual((len(ids), len(set(ids))), (len(lost) + 1, 1))
        for answer in lost:
            url, ids = self.answering([answer])
            with Trefoil(url, TOKEN) as proxied, self.assertRaises(OutcomeUnknown):
                proxied.call("commit", {"events": [self.event(1)]})
            self.assertEqual(len(ids), 1)
        # What comes afterwards and says that nothing was done speaks of another attempt.
        refused = (403, '{"error": {"code": "AUTH_INVALID_TOKEN", "message": "text"}}', 0)
        url, _ = self.answering([lost[0], refused])
        with Trefoil(url, TOKEN) as proxied, self.assertRaises(OutcomeUnknown):
            proxied.commit(events=[self.event(1)])

    def test_what_cannot_be_reached_fails_at_once(self):
        secure = self.server.url.replace("http:", "https:")
        for url, code in [("http://nobody.invalid", "ADDRESS"), (secure, "TLS")]:
            with Trefoil(url, TOKEN) as nobody, mock.patch("time.sleep", side_effect=AssertionError):
                for ask in (
                    lambda: nobody.commit(events=[self.event(1)]),
                    lambda: nobody.query({}),
                    lambda: next(nobody.subscribe({})),
                ):
                    with self.assertRaises(Unavailable) as refused:
                        ask()
                    self.assertEqual(refused.exception.code, code)
            asyncio.run(self.fail_at_once(url, code))
        for url in ("localhost:8080", "ftp://localhost", "http://", "http://a..b", "http://a:99999"):
            with self.assertRaises(Unavailable) as refused:
                Trefoil(url, TOKEN)
            self.assertEqual(refused.exception.code, "ADDRESS")

    async def fail_at_once(self, url, code):
        with mock.patch("trefoil_client._steps.Pause", side_effect=AssertionError):
            async with AsyncTrefoil(url, TOKEN) as nobody:
                with self.assertRaises(Unavailable) as refused:
                    await nobody.commit(events=[self.event(1)])
        self.assertEqual(refused.exception.code, code)

    def test_an_id_makes_a_commit_repeatable(self):
        parts = {"id": str(uuid.uuid4()), "events": [self.event(1)], "state": [["INCR", self.tag]]}
        self.assertEqual(self.db.commit(**parts), self.db.commit(**parts))
        self.assertEqual(self.db.state("GET", self.tag), "1")

    def test_decisions_of_many_threads_hold(self):
        def take(events):
            return {"events": [self.event(len(events))]} if len(events) < 5 else None

        def taker():
            taken.append(self.db.decide(tagged(self.tag), take, attempts=100))

        taken, threads = [], [threading.Thread(target=taker) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len([one for one in taken if one]), 5)
        events, _ = self.db.query(tagged(self.tag))
        self.assertEqual([event.data["n"] for event in events], [0, 1, 2, 3, 4])

    def test_reads_go_on_where_they_stopped(self):
        for start in (0, 1500):
            self.db.commit(events=[self.event(n) for n in range(start, start + 1500)])
        events = list(self.db.read(tagged(self.tag)))
        self.assertEqual([event.data["n"] for event in events], list(range(3000)))
        rest = self.db.read(tagged(self.tag), after=events[1999].global_position)
        self.assertEqual(next(rest).data["n"], 2000)
        self.assertEqual(next(self.db.read(tagged(self.tag), backwards=True)).data["n"], 2999)


class Kills(unittest.TestCase):
    """Whatever breaks, nothing is lost, and nothing happens twice."""

    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.stop)
        self.is_over = threading.Event()

    def kill_some_times(self):
        for _ in range(KILLS):
            time.sleep(0.4)
            self.server.kill()
            self.server.start()
        time.sleep(0.4)
        self.is_over.set()

    def check(self, db, n_written, seen):
        expected = sorted((writer, n) for writer, n_all in enumerate(n_written) for n in range(n_all))
        events = [tuple(event.data) for event in db.read({})]
        self.assertEqual(sorted(events), expected)
        self.assertEqual(seen, events)
        self.assertEqual(int(db.state("GET", "written")), len(expected))
        counts = [int(db.state("HGET", "projected", str(writer))) for writer in range(WRITERS)]
        self.assertEqual(counts, n_written)
        print(f"{len(expected)} commits, {KILLS} kills")

    def test_the_blocking_client(self):
        db = Trefoil(self.server.url, TOKEN)
        self.addCleanup(db.close)
        n_written, seen = [0] * WRITERS, []

        def write(writer):
            while not self.is_over.is_set():
                events = [{"type": "N", "data": [writer, n_written[writer]]}]
                db.commit(events=events, state=[["INCR", "written"]])
                n_written[writer] += 1

        def watch():
            for event in db.subscribe({}):
                seen.append(tuple(event.data))

        def project():
            db.project("counts", {}, lambda event: {
                "state": [["HINCRBY", "projected", str(event.data[0]), 1]]
            })

        for endless in (watch, project, project):
            threading.Thread(target=endless, daemon=True).start()
        writers = [threading.Thread(target=write, args=[n]) for n in range(WRITERS)]
        for writer in writers:
            writer.start()
        self.kill_some_times()
        for writer in writers:
            writer.join()
        end = time.monotonic() + 60
        while time.monotonic() < end and not self.has_caught_up(db, n_written, seen):
            time.sleep(0.05)
        self.check(db, n_written, seen)

    def has_caught_up(self, db, n_written, seen):
        last = db.call("events.head")
        return len(seen) == sum(n_written) and db.call("events.tracking", "counts") == last

    def test_the_client_for_asyncio(self):
        asyncio.run(self.use_the_client_for_asyncio())

    async def use_the_client_for_asyncio(self):
        n_written, seen = [0] * WRITERS, []
        async with AsyncTrefoil(self.server.url, TOKEN) as db:
            async def write(writer):
                while not self.is_over.is_set():
                    decided = await db.decide({"items": [{"types": ["Never"]}]}, decide(writer))
                    self.assertIsNotNone(decided)
                    n_written[writer] += 1

            def decide(writer):
                async def make(_):
                    events = [{"type": "N", "data": [writer, n_written[writer]]}]
                    return {"events": events, "state": [["INCR", "written"]]}
                return make

            async def watch():
                async for event in db.subscribe({}):
                    seen.append(tuple(event.data))

            async def apply(event):
                return {"state": [["HINCRBY", "projected", str(event.data[0]), 1]]}

            endless = [watch(), db.project("counts", {}, apply), db.project("counts", {}, apply)]
            endless = [asyncio.create_task(task) for task in endless]
            writers = [asyncio.create_task(write(n)) for n in range(WRITERS)]
            await asyncio.to_thread(self.kill_some_times)
            await asyncio.gather(*writers)
            blocking = Trefoil(self.server.url, TOKEN)
            self.addCleanup(blocking.close)
            end = time.monotonic() + 60
            while time.monotonic() < end and not self.has_caught_up(blocking, n_written, seen):
                await asyncio.sleep(0.05)
            self.check(blocking, n_written, seen)
            self.assertEqual([event.data async for event in db.read({})], [list(s) for s in seen])
            for task in endless:
                task.cancel()


if __name__ == "__main__":
    unittest.main()
