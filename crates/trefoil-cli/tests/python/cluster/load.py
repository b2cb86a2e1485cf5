"""Load over all three protocols on a cluster that is being broken, and what must hold meanwhile.

Usage: load.py NODES_FILE CA_FILE NAME=TOKEN... The file has the ports of each node and is replaced
when one starts again. Commands come by standard input, one per line:

  settle   waits until every writer of every namespace was acknowledged a few times from now on
  finish   ends the load, checks everything, and prints "ok" and the number of checks

The first check that fails ends it, with what was wrong.
"""

import os
import sys
import threading
import time
import traceback

import readers
import whole
import writers
from clients import Authority, Nodes
from space import Space

# How long a cluster may take until everything is written again after a fault is over.
PATIENCE = 60
# How many writes show that a writer is there again.
WRITES = 3


class Load:
    def __init__(self, nodes, spaces):
        self.nodes, self.spaces = nodes, spaces
        self.n_checks = 0
        self.is_over = threading.Event()
        self.is_done = threading.Event()
        self.ends = []
        # What each client was told last, to say why it does not go on, and how often what was told.
        self.last, self.told = {}, {}

    def is_running(self):
        return not self.is_over.is_set()

    def is_following(self):
        return not self.is_done.is_set()

    def on_end(self, step):
        self.ends.append(step)

    def check(self, holds, text):
        self.n_checks += 1
        if not holds:
            raise AssertionError(text)

    def note(self, space, who, failure):
        self.last[(space.name, who)] = f"{type(failure).__name__}: {failure}"
        kind = (who, type(failure).__name__)
        self.told[kind] = self.told.get(kind, 0) + 1

    def start(self):
        threads = []
        for space in self.spaces:
            for write in [writers.write_http, writers.write_grpc, writers.write_resp, writers.sell_seats]:
                threads.append(self.spawn(write, space))
            for kind, client, fetch in readers.READERS:
                for node in range(len(self.nodes.all())):
                    self.spawn(readers.keep_reading, space, node, kind, client, fetch)
            for follow in [readers.follow_http, readers.follow_grpc]:
                self.spawn(follow, space)
        return threads

    def spawn(self, work, *arguments):
        def run():
            try:
                work(self, *arguments)
            except BaseException:
                fail()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def settle(self):
        """Returns how long it took until all went on, and what the last ones were told."""
        began = time.monotonic()
        names = ["http", "grpc", "resp", "seats"]
        before = {(space, name): space.progress.get(name, 0) for space in self.spaces for name in names}
        waiting = []
        while before:
            time.sleep(0.02)
            before = {
                (space, name): count
                for (space, name), count in before.items()
                if space.progress.get(name, 0) < count + WRITES
            }
            if before:
                told = {(space.name, name): self.last.get((space.name, name)) for space, name in before}
                waiting = [f"{name} {writer}: {text}" for (name, writer), text in told.items()]
            self.check(time.monotonic() < began + PATIENCE, f"do not go on: {waiting}")
        seconds = time.monotonic() - began
        for space in self.spaces:
            readers.check_every_node(self, space)
        return f"{seconds:.1f} s, last {waiting[0][:300]}"

    def finish(self, threads):
        self.is_over.set()
        for thread in threads:
            thread.join(30)
            self.check(not thread.is_alive(), "a writer does not end")
        whole.check_all(self, self.spaces)
        self.is_done.set()
        for end in self.ends:
            end()
        acknowledged = sum(len(space.acknowledged) for space in self.spaces)
        unknown = sum(len(space.unknown) for space in self.spaces)
        bookings = sum(len(space.bookings) for space in self.spaces)
        told = ", ".join(f"{who} {kind} {count}" for (who, kind), count in sorted(self.told.items()))
        say(
            f"ok {self.n_checks} checks: {acknowledged} writes and {bookings} bookings acknowledged, "
            f"{unknown} of unknown outcome; {told}"
        )


def say(text):
    print(text, flush=True)


def fail():
    """Ends the process at once, whatever the other threads wait for."""
    traceback.print_exc()
    sys.stderr.flush()
    os._exit(1)


def main():
    nodes_file, Authority.FILE, *pairs = sys.argv[1:]
    names = [pair.split("=", 1) for pair in pairs]
    spaces = [Space(name, token, number) for number, (name, token) in enumerate(names)]
    load = Load(Nodes(nodes_file), spaces)
    threads = load.start()
    for line in sys.stdin:
        if line.strip() == "settle":
            say(f"settled after {load.settle()}")
        elif line.strip() == "finish":
            load.finish(threads)
            os._exit(0)


try:
    main()
except BaseException:
    fail()
