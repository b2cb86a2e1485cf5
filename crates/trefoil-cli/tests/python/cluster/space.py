"""What the clients of one namespace know together: what was acknowledged, and what was seen."""

import threading


class Space:
    def __init__(self, name, token, number):
        self.name, self.token, self.number = name, token, number
        self.lock = threading.Lock()
        # Of each write its position, or None if nobody knows whether it was made.
        self.acknowledged = {}
        self.unknown = set()
        # The highest value of each kind that was acknowledged or read.
        self.known = {}
        # How many writes of each kind were acknowledged.
        self.progress = {}
        # Of each booking the last status that was acknowledged, and its seats.
        self.bookings = {}
        # Of each subscription the keys of its events in the order of their positions.
        self.followed = {}

    def least(self, kind):
        """What a read that begins now must not be below."""
        with self.lock:
            return self.known.get(kind, 0)

    def learn(self, kind, value):
        with self.lock:
            self.known[kind] = max(self.known.get(kind, 0), value)

    def acknowledge(self, writer, key, position):
        with self.lock:
            if key in self.acknowledged:
                raise AssertionError(f"{self.name}: {key} was acknowledged twice")
            self.acknowledged[key] = position
            self.known["head"] = max(self.known.get("head", 0), position)
            self.progress[writer] = self.progress.get(writer, 0) + 1

    def lose(self, key):
        with self.lock:
            self.unknown.add(key)

    def advance(self, writer):
        with self.lock:
            self.progress[writer] = self.progress.get(writer, 0) + 1
