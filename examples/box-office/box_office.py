"""What a box office does, in terms of Trefoil: every method is one command or one pipeline.

There is no lock, no queue and no second store. `SEATS.RESERVE` checks the seats, takes them,
counts them, remembers who has them and until when, and appends the event that says so, all in one
commit that is on disk before the answer comes.
"""

import json
from dataclasses import dataclass

from redis.asyncio import Redis

HOLD_SECONDS = 30
LOG_LENGTH = 40

# The number of the show that is on sale, in Trefoil like everything else.
CURRENT_SHOW = "box-office:show"


@dataclass(frozen=True)
class Section:
    """A block of seats: `rows` rows of `seats` seats each, at `price` a seat."""

    id: str
    tier: str
    rows: int
    seats: int
    price: int


def tier(letter: str, name: str, blocks: int, rows: int, seats: int, price: int) -> list[Section]:
    return [Section(f"{letter}-{n + 1}", name, rows, seats, price) for n in range(blocks)]


# From the stage outwards.
VENUE = [
    *tier("A", "Stalls", blocks=3, rows=5, seats=15, price=120),
    *tier("B", "Circle", blocks=5, rows=5, seats=14, price=80),
    *tier("C", "Gallery", blocks=7, rows=6, seats=14, price=45),
]


class BoxOffice:
    """One show after the other, in the same venue."""

    def __init__(self, redis: Redis):
        self.redis = redis
        self.show = ""

    async def open(self) -> None:
        """Puts the current show on sale; the first one if there was none."""
        await self.redis.set(CURRENT_SHOW, 1, nx=True)
        await self._open_sections(await self.redis.get(CURRENT_SHOW))

    async def open_next(self) -> None:
        """Puts the next show on sale, with every seat available."""
        await self._open_sections(await self.redis.incr(CURRENT_SHOW))

    async def _open_sections(self, number: int) -> None:
        """Opening what is open already changes nothing, so nobody has to ask first."""
        show = f"show-{number}"
        async with self.redis.pipeline() as opening:
            for section in VENUE:
                opening.execute_command(
                    "SEATS.INIT", show, section.id, "ROWS", section.rows,
                    "SEATS", section.seats, "PRICE", section.price,
                )  # fmt: skip
            await opening.execute()
        self.show = show

    async def reserve(self, section: str, booking: str, buyer: str, wanted: list[str] | int,
                      hold: int = HOLD_SECONDS) -> dict:  # fmt: skip
        """Takes these seats, or so many of the best, for a while: all of them or none.

        The buyer chooses the id of the booking. Whoever gets no answer asks again with the same
        id: the seats are taken once, and the answer is the same.
        """
        which = ["BEST", wanted] if isinstance(wanted, int) else ["SEATS", *wanted]
        return await self.redis.execute_command(
            "SEATS.RESERVE", self.show, section, booking, buyer, *which, "HOLD", hold
        )

    async def finalize(self, booking: str, buyer: str) -> dict:
        """Sells what is held."""
        return await self.redis.execute_command("SEATS.FINALIZE", booking, buyer)

    async def release(self, booking: str, buyer: str) -> dict:
        """Gives back what is held. A hold that runs out needs nobody: Trefoil ends it."""
        return await self.redis.execute_command("SEATS.RELEASE", booking, buyer)

    async def stats(self) -> dict:
        return await self.redis.execute_command("SEATS.STATS", self.show)

    async def seats(self, section: str) -> list[list[int]]:
        """The rows of a section: 0 is available, 1 reserved, 2 sold."""
        return (await self.redis.execute_command("SEATS.MAP", self.show, section))["seats"]

    async def snapshot(self, buyer: str) -> dict:
        """All that a page needs to begin, and the position from which it follows the events.

        The position is read first. What happens meanwhile is in the seats and comes as an event
        once more, which does no harm: the last event on a seat says what it is.
        """
        event = ["TAG", f"event:{self.show}"]
        async with self.redis.pipeline() as reading:
            reading.execute_command("EVENT.QUERY", "COUNT", LOG_LENGTH, "REV", *event)
            reading.execute_command("EVENT.QUERY", *event, "TAG", f"buyer:{buyer}")
            for section in VENUE:
                reading.execute_command("SEATS.MAP", self.show, section.id)
            (head, latest), (_, own), *maps = await reading.execute()
        sections = [
            {"id": section.id, "tier": section.tier, "price": section.price, "seats": map["seats"]}
            for section, map in zip(VENUE, maps)
        ]
        return {
            "show": self.show,
            "position": head,
            "sections": sections,
            "latest": [event_of(found) for found in reversed(latest)],
            "own": [event_of(found) for found in own],
        }


def event_of(found: dict) -> dict:
    return {"type": found["type"], "data": json.loads(found["data"])}
