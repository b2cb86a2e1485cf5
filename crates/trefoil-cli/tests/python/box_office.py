"""The page of examples/box-office in a real browser: `box_office.py url resp-port token [image]`.

With an image, a picture of the sale is written there.
"""

import os
import sys
import time

from checks import check, done
from playwright.sync_api import Page, expect, sync_playwright
from redis import Redis

URL, RESP_PORT, TOKEN = sys.argv[1:4]
IMAGE = sys.argv[4] if len(sys.argv) > 4 else None
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
# A busy machine takes longer; what takes longer still has failed.
SALE_SECONDS = 100
ANSWER_SECONDS = 20

redis = Redis(port=int(RESP_PORT), password=TOKEN, protocol=3, decode_responses=True)


def seats(*words):
    return redis.execute_command(*words)


def seat(page: Page, name: str):
    return page.locator(f'[data-seat="{name}"]')


def fill(page: Page, name: str) -> str:
    """The colour of a seat, once it has stopped changing."""
    page.wait_for_timeout(500)
    return seat(page, name).evaluate("seat => getComputedStyle(seat).fill")


def counters(page: Page) -> dict:
    names = ["available", "reserved", "sold"]
    return {name: int(page.locator(f"[data-count={name}]").inner_text()) for name in names}


def stats(show: str, *section: str) -> dict:
    found = seats("SEATS.STATS", show, *section)
    return {name: found[name] for name in ["available", "reserved", "sold"]}


def counters_agree(page: Page, show: str) -> None:
    """The page draws its counters after the seats, with the next frame."""
    end = time.monotonic() + ANSWER_SECONDS
    while counters(page) != stats(show) and time.monotonic() < end:
        page.wait_for_timeout(20)
    check(counters(page) == stats(show), "the counters agree")


def states(page: Page) -> list[str]:
    return page.evaluate(
        "[...document.querySelectorAll('[data-seat]')].map(seat => seat.dataset.state)"
    )


def show_of(page: Page) -> str:
    expect(page.locator("#connection")).to_contain_text("live")
    return page.locator("#connection").inner_text().split("· ")[1]


def a_click_holds_a_seat_that_is_then_bought(page: Page, show: str) -> None:
    before = fill(page, "A-2:1-3")
    seat(page, "A-2:1-3").click()
    expect(seat(page, "A-2:1-3")).to_have_attribute("data-state", "1")
    check(seats("SEATS.MAP", show, "A-2")["seats"][0][2] == 1, "the seat is held")
    check(fill(page, "A-2:1-3") != before, "a held seat has another colour")
    clock = page.locator("#basket time")
    began = int(clock.inner_text().split()[0])
    check(15 <= began <= 30, f"{began} seconds are left")
    expect(clock).not_to_have_text(f"{began} s")
    page.get_by_role("button", name="Buy").click()
    expect(seat(page, "A-2:1-3")).to_have_attribute("data-state", "2")
    expect(page.locator("#basket li")).to_have_attribute("data-sold", "")
    counters_agree(page, show)


def the_keyboard_holds_a_seat_and_gives_it_back(page: Page, show: str) -> None:
    seat(page, "B-1:1-1").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(seat(page, "B-1:2-2")).to_have_attribute("data-own", "")
    check(stats(show, "B-1")["reserved"] == 1, "the seat is held")
    page.keyboard.press("Enter")
    expect(seat(page, "B-1:2-2")).to_have_attribute("data-state", "0")
    check(stats(show, "B-1")["reserved"] == 0, "the seat is free again")


def what_others_do_is_seen_and_respected(page: Page, show: str) -> None:
    seats("SEATS.RESERVE", show, "C-1", "theirs", "somebody", "SEATS", "2-5", "HOLDMS", 3000)
    expect(seat(page, "C-1:2-5")).to_have_attribute("data-state", "1")
    seat(page, "C-1:2-5").click()
    expect(page.locator("#notice")).to_contain_text("SEATTAKEN")
    expect(seat(page, "C-1:2-5")).to_have_attribute("data-state", "0")
    expect(page.locator("#log li").first).to_contain_text("expired")
    check(seats("SEATS.BOOKING", "theirs")["status"] == "EXPIRED", "the hold ended by itself")


def the_best_seats_are_adjacent(page: Page, show: str) -> None:
    page.locator("#best-section").select_option("B-3")
    page.locator("#best button", has_text="4").click()
    expect(page.locator("#basket li").first).to_contain_text("B-3 · 1-1…1-4")
    check(stats(show, "B-3")["reserved"] == 4, "four seats are held")
    page.get_by_role("button", name="Buy").click()
    expect(page.locator("#basket li[data-sold]")).to_have_count(2)


def the_venue_sells_out(page: Page, show: str) -> None:
    buyers = 80 if IMAGE else 150
    page.locator("#buyers").fill(str(buyers))
    page.get_by_role("button", name="Let them in").click()
    seen, end = [states(page)], time.monotonic() + SALE_SECONDS
    while seen[-1].count("2") < len(seen[-1]):
        assert time.monotonic() < end, f"not sold out: {stats(show)}"
        sold = seen[-1].count("2") / len(seen[-1])
        if IMAGE and not os.path.exists(IMAGE) and sold > 0.4:
            picture(page)
        page.wait_for_timeout(200)
        seen.append(states(page))
    check(len({tuple(states) for states in seen}) > 10, "seats change while buyers buy")
    check(any("1" in states for states in seen), "seats are held while buyers pay")
    expect(page.locator(".stage .number")).to_have_text("Sold out")
    total = len(seen[-1])
    counters_agree(page, show)
    check(counters(page) == {"available": 0, "reserved": 0, "sold": total}, "all are sold")
    check(seats("SEATS.CHECK", show) == [], "everything agrees with everything")
    expect(page.get_by_role("button", name="Let them in")).to_be_visible()


def picture(page: Page) -> None:
    page.locator("#best-section").select_option("C-4")
    page.locator("#best button", has_text="2").click()
    expect(page.locator("#basket li")).to_have_count(3)
    page.wait_for_timeout(400)
    page.screenshot(path=IMAGE)
    page.get_by_role("button", name="Buy").click()


def a_new_page_shows_the_same(page: Page) -> None:
    before = states(page)
    page.reload()
    show_of(page)
    check(states(page) == before, "the snapshot is what the events led to")
    expect(seat(page, "A-2:1-3")).to_have_attribute("data-own", "")
    expect(page.locator("#basket li[data-sold]").last).to_contain_text("A-2 · 1-3")


def a_new_show_has_every_seat(page: Page, show: str) -> None:
    page.get_by_role("button", name="New show").click()
    expect(page.locator("[data-count=sold]")).to_have_text("0")
    check(show_of(page) != show, "it is another show")
    check(set(states(page)) == {"0"}, "every seat is available")
    counters_agree(page, show_of(page))


def dark_is_dark(page: Page) -> None:
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(ground)
    page.emulate_media(color_scheme="dark")
    check(page.evaluate(ground) != light, "there is a dark page")


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": 1280, "height": 800},
            color_scheme="dark" if IMAGE else "light",
        )
        page.set_default_timeout(ANSWER_SECONDS * 1000)
        expect.set_options(timeout=ANSWER_SECONDS * 1000)
        asked, failures = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.goto(URL)
        show = show_of(page)
        counters_agree(page, show)
        a_click_holds_a_seat_that_is_then_bought(page, show)
        the_keyboard_holds_a_seat_and_gives_it_back(page, show)
        what_others_do_is_seen_and_respected(page, show)
        the_best_seats_are_adjacent(page, show)
        the_venue_sells_out(page, show)
        a_new_page_shows_the_same(page)
        a_new_show_has_every_seat(page, show)
        if not IMAGE:
            dark_is_dark(page)
        check(all(url.startswith(URL) for url in asked), f"asked elsewhere: {asked}")
        check(not failures, f"errors in the page: {failures}")
        browser.close()
    done()


main()
