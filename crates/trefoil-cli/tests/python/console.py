"""The web console in a real browser: `console.py binary axe [images]`.

`axe` is the file of axe-core, or `-` to leave the checks of accessibility out. With a directory for
images, pictures of three pages are written there. `CONSOLE_EVENTS` sets the size of the large
namespace.
"""

import json
import os
import sys
import time
import urllib.request
from pathlib import Path

import console_exact
import console_insight
from checks import check, done, equal
from console_harness import (
    ANSWER_SECONDS,
    TOKEN,
    Server,
    Watcher,
    offered,
    open_page,
    wait_for_subscribers,
    written_to,
)
from playwright.sync_api import Page, expect, sync_playwright

AXE = sys.argv[2]
IMAGES = Path(sys.argv[3]) if len(sys.argv) > 3 else None
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
EVENTS = int(os.environ.get("CONSOLE_EVENTS", "20000"))
PAGES = ["overview", "streams", "names", "tail", "query", "state", "seats", "write"]
PAGES += ["consumers", "namespaces", "nodes", "settings"]
HOSTILE = "<img src=x onerror=\"document.title='broken in'\">"


def fill_with_events(server: Server) -> None:
    server.rpc("stream.write", "workflow-1", {"type": "Started", "data": {"by": "Ada"}})
    cause = {
        "correlationStreamName": "workflow-1",
        "causationMessageStreamName": "workflow-1",
        "causationMessagePosition": 0,
    }
    for number in range(1, 61):
        event = {
            "stream": f"account-{number}",
            "type": "Opened",
            "data": {"owner": "Ada", "number": number},
        }
        event |= {"tags": [f"account:{number}", "owner:ada"], "metadata": cause}
        server.commit(events=[event], state=[["HINCRBY", f"balance:{number}", "cents", number]])
    hostile = {
        "stream": f"hostile-{HOSTILE}",
        "type": HOSTILE,
        "data": {HOSTILE: HOSTILE, "exact": 0},
        "tags": [HOSTILE],
    }
    body = json.dumps(["commit", {"events": [hostile]}]).replace(
        '"exact": 0', '"exact": 12345678901234567890.50'
    )
    server.post("/rpc", body.encode())
    server.commit(
        state=[
            ["SET", "greeting", "hello"],
            ["SET", "profile", '{"roles":["admin"]}', "EX", 5000],
            ["BITFIELD", "bits", "SET", "u2", "#7", 3],
        ]
    )
    server.rpc("seats.init", {"event": "gala", "section": "A-1", "rows": 4, "seatsPerRow": 6})


# The shell


def development_is_signed_in(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "")
    expect(page.get_by_role("combobox", name="Namespace")).to_have_value("0")
    expect(page.get_by_text("Everything is well")).to_be_visible()
    kept = page.evaluate("[document.cookie, Object.keys(localStorage).join(), location.href]")
    check(not any("ns_" in text for text in kept), kept)
    check(
        TOKEN in page.evaluate("sessionStorage.getItem('trefoil.session')"),
        "the token is kept for the tab",
    )


def headers_keep_strangers_out(server: Server) -> None:
    with urllib.request.urlopen(f"{server.url}/") as answer:
        check(
            "default-src 'self'" in answer.headers["content-security-policy"], "there is a policy"
        )
        equal(answer.headers["x-frame-options"], "DENY")
        check("<script>" not in answer.read().decode(), "there is no inline script")


def the_theme_can_be_chosen(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "#/streams")
    ground = "getComputedStyle(document.body).backgroundColor"
    system = page.evaluate(ground)
    page.get_by_role("button", name="Theme: System").click()
    equal(page.evaluate(ground), system)
    page.get_by_role("button", name="Theme: Light").click()
    check(page.evaluate(ground) != system, "dark is dark")
    page.reload()
    check(page.evaluate(ground) != system, "the choice is kept")
    page.get_by_role("button", name="Theme: Dark").click()
    page.emulate_media(color_scheme="dark")
    check(page.evaluate(ground) != system, "the system decides again")
    page.emulate_media(color_scheme="light")


def keys_go_to_pages(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "#/overview")
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page.get_by_role("heading", name="Streams", level=1)).to_be_focused()
    # Both lists are there before the search: one still to come has no `account-6` either.
    others = [page.get_by_role("link", name=name, exact=True) for name in ("hostile", "account-6")]
    for other in others:
        expect(other).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("account-5")
    for other in others:
        expect(other).to_have_count(0)
    expect(page.get_by_role("link", name="account-5", exact=True)).to_be_visible()
    page.get_by_role("heading", name="Streams", level=1).click()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="account", exact=True)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="account-5", level=1)).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")


def a_token_is_asked_for_and_can_be_given_up(page: Page, watcher: Watcher, server: Server) -> None:
    page.goto(f"{server.url}/#/streams")
    field = page.get_by_label("Token of the namespace")
    with watcher.refusals():
        field.fill("ns_ZGVmYXVsdA_" + "1" * 64)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_text("not authorized")).to_be_visible()
    field.fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Streams", level=1)).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(field).to_be_visible()
    equal(
        json.loads(page.evaluate("sessionStorage.getItem('trefoil.session')")),
        {"tokens": [], "token": None},
    )


# Streams and events


def streams_are_found_by_prefix(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "#/streams")
    row = page.get_by_role("region", name="Categories", exact=True).get_by_role(
        "row", name="account"
    )
    expect(row).to_contain_text("60")
    page.get_by_role("searchbox").fill("account-4")
    streams = page.get_by_role("region", name="Streams", exact=True).get_by_role("link")
    expect(streams).to_have_count(11)
    check("prefix=account-4" in page.url, page.url)
    page.reload()
    expect(streams).to_have_count(11)


def a_stream_says_what_is_new(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "#/stream/account-7")
    events = page.get_by_role("main").get_by_role("listitem")
    expect(events).to_have_count(1)
    server.rpc("stream.write", "account-7", {"type": "Deposited", "data": {"amount": 5}})
    page.get_by_role("button", name="1 new event: show").click()
    expect(events).to_have_count(2)
    expect(events.first).to_contain_text("Deposited")
    expect(page.get_by_text("2 events")).to_be_visible()


def an_event_leads_to_its_cause(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "#/stream/account-3")
    page.get_by_role("main").get_by_role("listitem").get_by_role("link").first.click()
    expect(page.get_by_role("heading", name="Opened", level=1)).to_be_visible()
    expect(page.get_by_role("region", name="Data", exact=True)).to_contain_text('owner: "Ada"')
    expect(page.get_by_role("link", name="owner:ada")).to_be_visible()
    commands = page.get_by_role("region", name="Read it elsewhere", exact=True)
    for language in ["curl", "CLI", "redis-cli"]:
        offered(commands, language, "account-3")
    page.get_by_role("link", name="event 1", exact=True).click()
    expect(page.get_by_role("heading", name="Started", level=1)).to_be_visible()


def what_is_stored_is_only_text(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "#/streams?prefix=hostile")
    page.get_by_role("region", name="Streams", exact=True).get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"hostile-{HOSTILE}")
    commands = page.get_by_role("region", name="As a command", exact=True)
    for language in ["curl", "CLI", "redis-cli"]:
        offered(commands, language, "12345678901234567890.50")
    page.get_by_role("main").get_by_role("listitem").get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    expect(page.get_by_role("region", name="Data", exact=True)).to_contain_text(
        "12345678901234567890.50"
    )
    check(page.locator("img").count() == 1, "there is no image but the brand's")
    check("broken in" not in page.title() or "img" in page.title(), page.title())


def a_large_namespace_stays_usable(page: Page, watcher: Watcher, server: Server) -> None:
    made = server.rpc("ns.create", "large")
    lines = (
        json.dumps(
            {
                "stream": f"item-{number % max(EVENTS // 10, 1)}",
                "type": "Made",
                "pos": number // max(EVENTS // 10, 1),
                "gpos": number + 1,
                "data": {"number": number},
                "meta": None,
                "time": "2026-01-01T00:00:00Z",
                "tags": [f"group:{number % 1000}"],
            }
        )
        for number in range(EVENTS)
    )
    body = "\n".join(lines).encode()
    headers = {"Authorization": f"Bearer {made['token']}"}
    answer = urllib.request.urlopen(
        urllib.request.Request(f"{server.url}/import", body, headers)
    ).read()
    check(b'"done":true' in answer, answer[-200:])
    open_page(page, server, "#/namespaces")
    page.get_by_role("combobox", name="Namespace").select_option(label="Another token …")
    page.get_by_role("dialog").get_by_label("Token of the namespace").fill(made["token"])
    page.get_by_role("button", name="Sign in").click()
    began = time.monotonic()
    page.goto(f"{server.url}/#/streams")
    expect(
        page.get_by_role("region", name="Categories", exact=True).get_by_role("row", name="item")
    ).to_contain_text(f"{EVENTS:,}")
    streams = page.get_by_role("region", name="Streams", exact=True).get_by_role("link")
    expect(streams).to_have_count(100)
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("button", name="Back")).to_be_enabled()
    page.goto(f"{server.url}/#/category/item")
    expect(page.get_by_role("main").get_by_role("listitem")).to_have_count(50)
    page.get_by_role("button", name="Oldest").click()
    expect(page.get_by_role("main").get_by_role("listitem").last).to_contain_text('"number":0')
    page.get_by_role("button", name="Newer").click()
    expect(page.get_by_role("main").get_by_role("listitem").last).to_contain_text('"number":50')
    page.get_by_label("From the time").fill("2025-12-31T00:00:00")
    expect(page.get_by_role("main").get_by_role("listitem").last).to_contain_text('"number":0')
    query = json.dumps({"items": [{"tags": ["group:7"]}]})
    page.goto(f"{server.url}/#/query?q={query}")
    expect(page.get_by_role("region", name="Plan", exact=True)).to_contain_text(
        f"{len(range(7, EVENTS, 1000)):,} events"
    )
    page.goto(f"{server.url}/#/event/{EVENTS // 2}")
    commit = page.get_by_role("region", name="Commit", exact=True)
    expect(commit).to_contain_text("other events, of which")
    commit.get_by_role("link", name="All of the commit").click()
    expect(page.get_by_role("main").get_by_role("listitem")).to_have_count(50)
    page.goto(f"{server.url}/#/consumers")
    expect(page.get_by_text("Nobody is subscribed.")).to_be_visible()
    seconds = time.monotonic() - began
    print(f"{EVENTS} events: seven pages in {seconds:.1f} s", file=sys.stderr)
    check(seconds < ANSWER_SECONDS, seconds)
    page.get_by_role("combobox", name="Namespace").select_option(label="default")


# The live tail


def the_tail_follows_filters_and_pauses(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "#/tail?category=account")
    events = page.get_by_role("main").get_by_role("listitem")
    expect(page.get_by_text("Waiting for the next event")).to_be_visible()
    wait_for_subscribers(server, 1)
    server.rpc("stream.write", "other-1", {"type": "Ignored", "data": {}})
    server.rpc("stream.write", "account-8", {"type": "Seen", "data": {"n": 1}})
    expect(events).to_have_count(1)
    expect(events.first).to_contain_text("Seen")
    page.get_by_role("button", name="Pause").click()
    server.rpc("stream.write", "account-8", {"type": "Missed", "data": {"n": 2}})
    expect(page.get_by_role("button", name="Continue (1 new)")).to_be_visible()
    expect(events).to_have_count(1)
    page.keyboard.press("p")
    expect(events).to_have_count(2)
    page.get_by_role("searchbox", name="Types").fill("Wanted")
    expect(events).to_have_count(0)
    wait_for_subscribers(server, 1)
    check("type=Wanted" in page.url, page.url)
    server.rpc("stream.write", "account-8", {"type": "Unwanted", "data": {}})
    server.rpc("stream.write", "account-8", {"type": "Wanted", "data": {}})
    expect(events).to_have_count(1)
    expect(page.get_by_role("main")).not_to_contain_text("Unwanted")


def a_killed_server_is_missed_and_comes_back(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "#/tail")
    wait_for_subscribers(server, 1)
    server.commit(events=[{"type": "Before", "data": {}}])
    events = page.get_by_role("main").get_by_role("listitem")
    expect(events).to_have_count(1)
    with watcher.refusals():
        server.kill()
        expect(page.get_by_text("The server does not answer")).to_be_visible()
        server.start()
        expect(page.get_by_text("The server does not answer")).to_have_count(0)
    wait_for_subscribers(server, 1)
    server.commit(events=[{"type": "After", "data": {}}])
    expect(events).to_have_count(2)
    expect(events.first).to_contain_text("After")
    for link, text in [
        ("#/streams", "account-1"),
        ("#/event/1", "Started"),
        ("#/overview", "Everything is well"),
    ]:
        open_page(page, server, link)
        expect(page.get_by_role("main")).to_contain_text(text)


# Queries, state, writing, seats, namespaces, overview


def a_query_is_built_explained_and_live(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "#/query")
    page.get_by_label("Add a type").fill("Opened")
    page.keyboard.press("Enter")
    page.get_by_label("Add a tag").fill("account:9")
    page.keyboard.press("Enter")
    plan = page.get_by_role("region", name="Plan", exact=True)
    expect(plan).to_contain_text("1 event of the range")
    expect(plan.get_by_role("row", name="tag account:9")).to_contain_text("finds the events")
    events = page.get_by_role("main").get_by_role("listitem")
    expect(events).to_have_count(1)
    commands = page.get_by_role("region", name="As a command", exact=True)
    for language in ["curl", "CLI", "redis-cli", "Python"]:
        offered(commands, language, "account-9")
    page.get_by_label("Live").check()
    server.commit(
        events=[
            {
                "stream": "account-9",
                "type": "Opened",
                "data": {"again": True},
                "tags": ["account:9"],
            }
        ]
    )
    expect(events).to_have_count(2)
    page.reload()
    expect(events).to_have_count(2)
    page.get_by_role("button", name="Remove account:9").click()
    expect(events).to_have_count(50)


def types_and_tags_are_listed_and_offered(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "#/names")
    types = page.get_by_role("region", name="Types", exact=True)
    expect(types.get_by_role("row", name="Started")).to_contain_text("1")
    page.get_by_role("searchbox").fill("account:1")
    tags = page.get_by_role("region", name="Tags", exact=True)
    expect(tags.get_by_role("row")).to_have_count(12)
    server.commit(events=[{"type": "Opened", "data": {}, "tags": ["account:1new"]}])
    tags.get_by_role("link", name="account:17").click()
    expect(page.get_by_role("heading", name="Query", level=1)).to_be_visible()
    page.get_by_label("Add a tag").fill("account:1n")
    expect(page.locator("datalist option[value='account:1new']")).to_have_count(1)


def state_is_found_shown_and_changed(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "#/state")
    page.get_by_role("searchbox").fill("balance:1*")
    keys = page.get_by_role("region", name="Keys", exact=True).get_by_role("link")
    expect(keys).to_have_count(11)
    page.get_by_role("link", name="balance:12").click()
    value = page.get_by_role("region", name="Value", exact=True)
    expect(value.get_by_role("row", name="cents")).to_contain_text("12")
    server.commit(state=[["HSET", "balance:12", "cents", 4711]])
    expect(value.get_by_role("row", name="cents")).to_contain_text("4711")
    open_page(page, server, "#/state?key=profile")
    expect(value).to_contain_text('0: "admin"')
    expect(value).to_contain_text("1 h")
    open_page(page, server, "#/state?key=bits")
    value.get_by_role("button", name="Bits").click()
    equal(value.locator(".cell").nth(7).get_attribute("title"), "#7: 3")
    line = page.get_by_label("A state command")
    line.fill("SET \"two words\" 'their value'")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Command", exact=True)).to_contain_text('"OK"')
    equal(server.commit(state=[["GET", "two words"]])["state"], ["their value"])


def a_refused_command_says_why(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "#/state")
    with watcher.refusals():
        page.get_by_label("A state command").fill("INCR greeting")
        page.keyboard.press("Enter")
        expect(page.get_by_role("region", name="Command", exact=True)).to_contain_text(
            "not an integer"
        )


def a_condition_is_tried_and_fails(page: Page, watcher: Watcher, server: Server) -> None:
    query = json.dumps({"items": [{"tags": ["account:11"]}]})
    open_page(page, server, f"#/write?stream=account-11&condition={query}")
    head = server.rpc("events.head")
    page.get_by_label("Type", exact=True).fill("Closed")
    with watcher.refusals():
        page.get_by_role("button", name="Only check the conditions").click()
        expect(page.get_by_text("CONDITION_FAILED")).to_be_visible()
        expect(page.get_by_role("main").get_by_role("listitem")).to_contain_text("account-11")
        page.get_by_role("button", name="Write", exact=True).click()
        expect(page.get_by_text("Nothing was written")).to_be_visible()
    equal(server.rpc("events.head"), head)
    page.get_by_role("button", name="Use the head of the log").click()
    page.get_by_role("button", name="Only check the conditions").click()
    expect(page.get_by_text("Every condition holds")).to_be_visible()
    equal(server.rpc("events.head"), head)
    page.get_by_role("button", name="Write", exact=True).click()
    page.get_by_role("link", name=f"event {head + 1}").click()
    expect(page.get_by_role("heading", name="Closed", level=1)).to_be_visible()


def seats_change_while_one_looks(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "#/seats")
    section = page.get_by_role("region", name="Section A-1", exact=True)
    expect(section.get_by_role("img")).to_have_accessible_name("24 of 24 seats are available")
    server.rpc(
        "seats.reserve",
        {"event": "gala", "section": "A-1", "booking": "b1", "buyer": "ada", "seats": ["2-3"]},
    )
    expect(section.get_by_title("2-3: reserved")).to_be_visible()
    expect(section.get_by_role("img")).to_have_accessible_name("23 of 24 seats are available")


def namespaces_are_made_renewed_and_deleted(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "#/namespaces")
    page.get_by_role("button", name="New namespace").click()
    page.get_by_label("Name", exact=True).fill("tenant-a")
    page.get_by_role("button", name="Create").click()
    first = page.get_by_role("status").locator("code").inner_text()
    page.get_by_role("button", name="New token for tenant-a").click()
    page.get_by_role("button", name="Make a new token").click()
    expect(page.get_by_role("status").locator("code")).not_to_have_text(first)
    page.get_by_role("button", name="Open tenant-a here").click()
    page.goto(f"{server.url}/#/streams")
    expect(page.get_by_text("There are no streams yet.").first).to_be_visible()
    page.get_by_role("combobox", name="Namespace").select_option(label="default")
    page.goto(f"{server.url}/#/namespaces")
    page.get_by_role("button", name="Delete tenant-a").click()
    button = page.get_by_role("button", name="Delete for good")
    expect(button).to_be_disabled()
    page.get_by_label("Type its name").fill("tenant-a")
    button.click()
    expect(page.get_by_role("button", name="Delete tenant-a")).to_have_count(0)
    check("tenant-a" not in [entry["namespace"] for entry in server.rpc("ns.list")], "it is gone")


def the_overview_shows_what_is_written(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "#/overview")
    writes = page.get_by_role("region", name="Writes", exact=True)
    times = page.get_by_role("region", name="Time of a write over HTTP", exact=True)
    memory = page.get_by_role("region", name="Memory", exact=True)
    expect(memory.locator(".u-value").nth(1)).to_contain_text("MiB")
    groups = page.get_by_role("region", name="Time of a group", exact=True)
    with written_to(server, 0.01):
        # The legend has the newest values.
        expect(writes.locator(".u-value").nth(1)).not_to_have_text("0/s")
        for chart in [times, groups]:
            expect(chart.locator(".u-value").nth(1)).to_contain_text("s")


def everybody_can_use_it(page: Page, watcher: Watcher, server: Server) -> None:
    links = [f"#/{name}" for name in PAGES] + [
        "#/stream/account-3",
        "#/event/3",
        "#/commit/3",
        "#/category/account",
        "#/state?key=greeting",
    ]
    links.append("#/write?condition=" + json.dumps({"items": [{"tags": ["a"]}]}))
    found = []
    for scheme in ["light", "dark"]:
        page.emulate_media(color_scheme=scheme)
        for link in links:
            open_page(page, server, link)
            page.wait_for_timeout(300)
            found += [(link, scheme, *finding) for finding in findings(page)]
    page.emulate_media(color_scheme="light")
    check(not found, found)


def findings(page: Page) -> list:
    """What axe finds that is serious."""
    if AXE == "-":
        return []
    page.evaluate(Path(AXE).read_text())
    found = page.evaluate("axe.run().then((found) => found.violations)")
    serious = [rule for rule in found if rule["impact"] in ("serious", "critical")]
    return [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in serious]


def a_phone_is_wide_enough(page: Page, watcher: Watcher, server: Server) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for link in [f"#/{name}" for name in PAGES] + [
        "#/stream/account-3",
        "#/event/3",
        "#/commit/3",
        "#/state?key=bits",
    ]:
        open_page(page, server, link)
        page.wait_for_timeout(200)
        width = page.evaluate("document.documentElement.scrollWidth")
        check(width <= 390, link, width)
    page.set_viewport_size({"width": 1280, "height": 800})


def pictures(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 1200, "height": 760})
    query = json.dumps({"items": [{"types": ["Opened"], "tags": ["owner:ada"]}]})
    with written_to(server, 0.004):
        open_page(page, server, "#/overview")
        page.wait_for_timeout(240_000)
        page.screenshot(path=IMAGES / "console-overview.png")
    first = Server("dev")
    first.commit(
        events=[{
            "stream": "order-1001", "type": "CouponRedeemed", "data": {"customer": "ada"},
            "tags": ["coupon:SPRING"],
        }],
        state=[["HINCRBY", "stats:coupons", "redeemed", "1"]],
    )
    pages = [
        (server, "console-query", f"#/query?q={query}", 760),
        (first, "console-event", "#/event/1", 640),
    ]
    for of, name, link, height in pages:
        page.set_viewport_size({"width": 1200, "height": height})
        open_page(page, of, link)
        page.wait_for_timeout(1000)
        page.screenshot(path=IMAGES / f"{name}.png")
    first.kill()


# Each gets the page, what watches it, and the server.
TESTS = [
    development_is_signed_in,
    *console_insight.TESTS,
    the_theme_can_be_chosen,
    keys_go_to_pages,
    streams_are_found_by_prefix,
    a_stream_says_what_is_new,
    an_event_leads_to_its_cause,
    what_is_stored_is_only_text,
    the_tail_follows_filters_and_pauses,
    a_query_is_built_explained_and_live,
    types_and_tags_are_listed_and_offered,
    state_is_found_shown_and_changed,
    *console_exact.TESTS,
    seats_change_while_one_looks,
    the_overview_shows_what_is_written,
    a_phone_is_wide_enough,
    everybody_can_use_it,
    a_refused_command_says_why,
    a_condition_is_tried_and_fails,
    namespaces_are_made_renewed_and_deleted,
    a_killed_server_is_missed_and_comes_back,
    a_large_namespace_stays_usable,
    console_insight.many_namespaces_come_in_pages,
    console_insight.a_server_that_is_alone_has_no_nodes,
]


def main() -> None:
    server, guarded = Server("dev"), Server("serve", "--token", TOKEN)
    headers_keep_strangers_out(server)
    fill_with_events(server)
    failures = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        expect.set_options(timeout=ANSWER_SECONDS * 1000)
        signing_in = [
            a_token_is_asked_for_and_can_be_given_up,
            console_insight.secrets_are_not_among_the_settings,
        ]
        servers = [(guarded, signing_in), (server, TESTS)]
        if os.environ.get("OBJECT_STORAGE"):
            node = Server("dev", "--storage", "memory:")
            servers.append((node, [console_insight.nodes_are_listed_and_found_by_namespace]))
        for of, tests in servers:
            page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
            page.set_default_timeout(ANSWER_SECONDS * 1000)
            watcher = Watcher(page, of)
            for test in tests:
                try:
                    test(page, watcher, of)
                    watcher.check()
                except Exception as error:
                    failures.append(f"{test.__name__}: {error}")
        if IMAGES:
            pictures(page, server)
        browser.close()
    server.kill()
    guarded.kill()
    check(not failures, "\n\n".join(failures))
    done()


main()
