"""Pages of the console that look into the server: single events, commits, consumers, settings."""

import http.client
import json
import re
import threading
import urllib.request
from contextlib import contextmanager

from checks import check
from console_harness import TOKEN, Server, Watcher, offered, open_page
from playwright.sync_api import Page, expect


def an_event_is_found_by_its_id_and_leads_to_its_commit(
    page: Page, watcher: Watcher, server: Server
) -> None:
    events = [{"stream": f"together-{n}", "type": "Joined", "data": {"n": n}} for n in range(3)]
    commands = [["SET", "together", "yes"], ["HSET", "joined:1", "count", 3]]
    made = server.commit(events=events, state=commands)
    open_page(page, server, f"#/event/{made['events'][1]['id']}")
    expect(page.get_by_role("heading", name="Joined", level=1)).to_be_visible()
    commit = page.get_by_role("region", name="Commit", exact=True)
    expect(commit).to_contain_text("with 2 other events")
    expect(commit.get_by_role("listitem")).to_have_count(2)
    expect(commit.get_by_role("row", name=re.compile("new together"))).to_contain_text("yes")
    expect(commit.get_by_role("row", name=re.compile("new joined:1"))).to_contain_text("count: 3")
    elsewhere = page.get_by_role("region", name="Read it elsewhere", exact=True)
    offered(elsewhere, "curl", made["events"][1]["id"])
    commit.get_by_role("link", name=re.compile("^commit")).click()
    expect(page.get_by_role("heading", name=f"Commit {made['commit']}", level=1)).to_be_visible()
    expect(page.get_by_role("main").get_by_role("listitem")).to_have_count(3)
    offered(page.get_by_role("region", name="Read it elsewhere", exact=True), "curl", "together-2")
    page.get_by_role("link", name="joined:1").click()
    expect(page.get_by_role("region", name="Value", exact=True)).to_contain_text("count")


def an_event_that_is_not_there_comes_while_one_looks(
    page: Page, watcher: Watcher, server: Server
) -> None:
    position = server.rpc("events.head") + 1
    open_page(page, server, f"#/event/{position}")
    expect(page.get_by_text("There is no such event.")).to_be_visible()
    made = server.commit(events=[{"type": "Arrived", "data": {}}])
    page.reload()
    expect(page.get_by_role("heading", name="Arrived", level=1)).to_be_visible()
    expect(page.get_by_role("region", name="Commit", exact=True)).to_contain_text(
        "It changed nothing of the state."
    )
    open_page(page, server, f"#/commit/{made['commit'] + 1}")
    expect(page.get_by_text("There is no such commit yet.")).to_be_visible()
    server.commit(state=[["SET", "only", "state"]])
    page.reload()
    expect(page.get_by_text("It has no events.")).to_be_visible()
    changes = page.get_by_role("region", name="Changes of the state", exact=True)
    expect(changes.get_by_role("row", name=re.compile("new only"))).to_contain_text("state")


def a_long_commit_comes_in_parts(page: Page, watcher: Watcher, server: Server) -> None:
    events = [{"type": "Part", "data": {"number": number}} for number in range(120)]
    commands = [["SET", f"part:{number}", number] for number in range(60)]
    made = server.commit(events=events, state=commands)
    open_page(page, server, f"#/commit/{made['commit']}")
    listed = page.get_by_role("main").get_by_role("listitem")
    expect(listed).to_have_count(50)
    parts = page.get_by_role("navigation", name="Parts of the events")
    parts.get_by_role("button", name="Next").click()
    expect(listed.first).to_contain_text('"number":50')
    parts.get_by_role("button", name="Next").click()
    expect(listed).to_have_count(20)
    expect(parts.get_by_role("button", name="Next")).to_be_disabled()
    changes = page.get_by_role("navigation", name="Parts of the changes")
    changes.get_by_role("button", name="Next").click()
    expect(page.get_by_role("link", name="part:49")).to_be_visible()
    changes.get_by_role("button", name="Next").click()
    expect(page.get_by_role("link", name="part:59")).to_be_visible()


@contextmanager
def subscribed(server: Server, path: str):
    """Somebody follows events and reads what comes."""
    request = urllib.request.Request(server.url + path, headers={"Authorization": f"Bearer {TOKEN}"})
    response = urllib.request.urlopen(request)

    def read() -> None:
        try:
            while response.read1(65536):
                pass
        except (OSError, http.client.HTTPException):
            pass  # The response was closed.

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield
    finally:
        response.fp.raw._sock.shutdown(2)
        reader.join()


def consumers_are_seen_as_they_come_and_go(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "#/consumers")
    subscriptions = page.get_by_role("region", name="Subscriptions", exact=True)
    tracked = page.get_by_role("region", name="Tracked positions", exact=True)
    expect(subscriptions).to_contain_text("Nobody is subscribed.")
    expect(tracked).to_contain_text("No positions are tracked.")
    query = urllib.request.quote(json.dumps({"items": [{"types": ["Opened"], "tags": ["owner:ada"]}]}))
    with subscribed(server, f"/events?query={query}"):
        row = subscriptions.get_by_role("row", name=re.compile("all streams: Opened . owner:ada"))
        expect(row).to_contain_text("up to date")
        head = server.rpc("events.head")
        event = {"type": "Opened", "data": {}, "tags": ["owner:ada"]}
        server.commit(events=[event], tracking={"source": "reports", "position": head})
        expect(row).to_contain_text(f"{head + 1:,}")
        expect(tracked.get_by_role("row", name="reports")).to_contain_text("1")
        row.get_by_role("link").click()
        expect(page.get_by_role("heading", name="Query", level=1)).to_be_visible()
        page.go_back()
        expect(row).to_be_visible()
    expect(subscriptions).to_contain_text("Nobody is subscribed.")
    server.commit(events=[], tracking={"source": "reports", "position": head + 1})
    expect(tracked.get_by_role("row", name="reports")).to_contain_text("up to date")
    page.get_by_role("searchbox").fill("nothing")
    expect(tracked).to_contain_text("No source begins like this.")
    check("source=nothing" in page.url, page.url)


def settings_say_where_they_came_from(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "#/settings")
    settings = page.get_by_role("region", name="Settings", exact=True)
    expect(settings.get_by_role("row", name=re.compile("^port"))).to_contain_text("flag")
    expect(settings.get_by_role("row", name="cache-size")).to_contain_text("default")
    page.get_by_role("searchbox").fill("log-")
    expect(settings.get_by_role("row")).to_have_count(3)


def secrets_are_not_among_the_settings(page: Page, watcher: Watcher, server: Server) -> None:
    page.goto(f"{server.url}/#/settings")
    page.get_by_label("Token of the namespace").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    settings = page.get_by_role("region", name="Settings", exact=True)
    expect(settings.get_by_role("row", name=re.compile("^token"))).to_contain_text("never shown")
    check(TOKEN not in page.content(), "the token is nowhere on the page")


def a_server_that_is_alone_has_no_nodes(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "#/nodes")
    expect(page.get_by_text("This server is alone: it is no node of a cluster.")).to_be_visible()


def nodes_are_listed_and_found_by_namespace(page: Page, watcher: Watcher, server: Server) -> None:
    server.rpc("ns.create", "idle")
    server.commit(events=[{"type": "Arrived", "data": {}}])
    open_page(page, server, "#/nodes")
    nodes = page.get_by_role("region", name="Nodes", exact=True)
    expect(nodes.get_by_role("row")).to_have_count(2)
    row = nodes.get_by_role("row", name=re.compile("this one"))
    expect(row).to_contain_text("alive")
    version = server.rpc("sys.nodes")["nodes"][0]["version"]
    expect(row).to_contain_text(version)
    search = page.get_by_label("Which node has the namespace …")
    search.fill("default")
    expect(page.get_by_role("status")).to_contain_text("default is on")
    search.fill("idle")
    expect(page.get_by_role("status")).to_contain_text("Nobody has idle at present.")
    with watcher.refusals():
        search.fill("nobody")
        expect(page.get_by_role("alert")).to_contain_text("nobody")
        search.fill("")
        expect(page.get_by_role("alert")).to_have_count(0)


def a_chosen_token_says_whose_it_is(page: Page, watcher: Watcher, server: Server) -> None:
    server.rpc("ns.create", "chosen", {"token": "a token of my own choice"})
    open_page(page, server, "#/streams")
    choice = page.get_by_role("combobox", name="Namespace")
    choice.select_option(label="Another token …")
    page.get_by_role("dialog").get_by_label("Token of the namespace").fill("a token of my own choice")
    page.get_by_role("button", name="Sign in").click()
    expect(choice.locator("option:checked")).to_have_text("chosen")
    page.goto(f"{server.url}/#/settings")
    expect(page.get_by_text("Only the token of the namespace default")).to_be_visible()
    page.goto(f"{server.url}/#/namespaces")
    expect(page.get_by_role("region", name="chosen", exact=True)).to_be_visible()
    choice.select_option(label="default")


def keys_come_and_go_while_one_looks(page: Page, watcher: Watcher, server: Server) -> None:
    open_page(page, server, "#/state?pattern=live:*")
    keys = page.get_by_role("region", name="Keys", exact=True)
    expect(keys).to_contain_text("No key matches.")
    server.commit(state=[["SET", "live:1", "a"], ["SADD", "live:2", "b"]])
    expect(keys.get_by_role("link")).to_have_count(2)
    server.commit(state=[["DEL", "live:1"], ["EXPIRE", "live:2", 5000]])
    expect(keys.get_by_role("link")).to_have_count(1)
    expect(keys.get_by_role("row", name="live:2")).to_contain_text("1 h")


def many_namespaces_come_in_pages(page: Page, watcher: Watcher, server: Server) -> None:
    for number in range(102):
        server.rpc("ns.create", f"many-{number:03}")
    open_page(page, server, "#/namespaces?prefix=many-")
    rows = page.get_by_role("region", name="Namespaces", exact=True).get_by_role("row")
    expect(rows).to_have_count(101)
    page.get_by_role("button", name="Next").click()
    expect(rows).to_have_count(3)
    server.rpc("ns.delete", "many-101")
    page.get_by_role("button", name="Back").click()
    page.get_by_role("button", name="Next").click()
    expect(rows).to_have_count(2)
    page.get_by_role("searchbox").fill("many-05")
    expect(rows).to_have_count(11)


# Each gets the page, what watches it, and the server.
TESTS = [
    an_event_is_found_by_its_id_and_leads_to_its_commit,
    an_event_that_is_not_there_comes_while_one_looks,
    a_long_commit_comes_in_parts,
    consumers_are_seen_as_they_come_and_go,
    settings_say_where_they_came_from,
    a_chosen_token_says_whose_it_is,
    keys_come_and_go_while_one_looks,
]
