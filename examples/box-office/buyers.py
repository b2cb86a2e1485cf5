"""Simulated buyers: they look, choose, hesitate, pay, change their minds, or just walk away."""

import asyncio
import random
import statistics
import time
import uuid
from collections import deque

from redis.exceptions import RedisError, ResponseError

from box_office import VENUE, BoxOffice

BUYERS_MAX = 200
# How long a buyer takes, in seconds: to come, to choose among the seats, to pay.
COMES = (0.1, 1.8)
CHOOSES = (0.1, 0.5)
PAYS = (0.8, 3.0)
# Shorter than a visitor's, so that seats of those who walk away come back while one watches.
HOLD_SECONDS = 5


class Crowd:
    """As many buyers as wanted, until the show is sold out."""

    def __init__(self, office: BoxOffice):
        self.office = office
        self.wanted = 0
        self.tasks: set[asyncio.Task] = set()
        self.forget()

    def forget(self) -> None:
        """Counts anew."""
        self.reserved = self.refused = 0
        self.seconds: deque[float] = deque(maxlen=500)

    def want(self, count: int) -> None:
        """More buyers come, or some leave when they are done with what they do."""
        self.wanted = max(0, min(count, BUYERS_MAX))
        while len(self.tasks) < self.wanted:
            task = asyncio.create_task(self._buy_until_sold_out())
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    def report(self) -> dict:
        median = statistics.median(self.seconds) * 1000 if self.seconds else None
        return {
            "wanted": self.wanted,
            "reserved": self.reserved,
            "refused": self.refused,
            "median_ms": median and round(median, 2),
        }

    async def _buy_until_sold_out(self) -> None:
        await asyncio.sleep(random.uniform(*COMES))
        while len(self.tasks) <= self.wanted:
            try:
                await self._look(random.choice(VENUE).id)
            except RedisError:
                # Somebody was faster, or the server is away for a moment: look again.
                self.refused += 1
            await asyncio.sleep(random.uniform(*COMES))

    async def _look(self, section: str) -> None:
        rows = await self.office.seats(section)
        if any(0 in row for row in rows):
            await self._buy(section, rows)
        elif await self._is_sold_out():
            self.wanted = 0

    async def _is_sold_out(self) -> bool:
        stats = await self.office.stats()
        return stats["sold"] == stats["total"]

    async def _buy(self, section: str, rows: list[list[int]]) -> None:
        booking, buyer = str(uuid.uuid4()), f"buyer-{random.randrange(10_000):04}"
        count = random.choices([1, 2, 3, 4], weights=[2, 5, 2, 3])[0]
        wanted = choose(rows, count) if random.random() < 0.6 else count
        await asyncio.sleep(random.uniform(*CHOOSES))
        try:
            await self._reserve(section, booking, buyer, wanted)
        except ResponseError as error:
            if not str(error).startswith("NOSEATS"):
                raise
            await self._reserve(section, booking, buyer, 1)
        await asyncio.sleep(random.uniform(*PAYS))
        match random.random():
            case mood if mood < 0.87:
                await self.office.finalize(booking, buyer)
            case mood if mood < 0.95:
                await self.office.release(booking, buyer)
            case _:
                pass  # The hold runs out.

    async def _reserve(self, section: str, booking: str, buyer: str, wanted: list[str] | int):
        began = time.perf_counter()
        await self.office.reserve(section, booking, buyer, wanted, HOLD_SECONDS)
        self.seconds.append(time.perf_counter() - began)
        self.reserved += 1


def choose(rows: list[list[int]], count: int) -> list[str]:
    """A random free seat and those to its right, as far as they are free."""
    free = [(r, s) for r, row in enumerate(rows) for s, state in enumerate(row) if state == 0]
    r, first = random.choice(free)
    seats = []
    for s in range(first, min(first + count, len(rows[r]))):
        if rows[r][s] != 0:
            break
        seats.append(f"{r + 1}-{s + 1}")
    return seats
