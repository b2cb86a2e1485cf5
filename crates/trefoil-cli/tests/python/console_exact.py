"""The console keeps what a person typed and what is stored as it is, and asks before it destroys anything."""

import json

from checks import check, equal
from console_harness import Server, Watcher, open_page
from playwright.sync_api import Page, expect


def what_is_typed_is_stored_as_it_is(page: Page, watcher: Watcher, server: Server) -> None:
    numbers = '"n": 12345678901234567890123, "huge": 1e400, "one": 1.0'
    typed = '{"2": [true],  "1": 2, ' + numbers + "}"
    open_page(page, server, "#/write?stream=exact-1")
    page.get_by_label("Type", exact=True).fill("Counted")
    page.get_by_label("Data, any JSON").fill(typed)
    page.get_by_label("Metadata, an object or nothing").fill('{"m": 1.10}')
    page.get_by_role("button", name="Write", exact=True).click()
    expect(page.get_by_text("Written as event")).to_be_visible()
    read = b'["stream.get", "exact-1"]'
    check(typed.encode() in server.post("/rpc", read), "not as it was typed")
    check(b'{"m": 1.10}' in server.post("/rpc", read), "not as it was typed")
    page.get_by_role("main").get_by_role("link", name="event").first.click()
    page.get_by_role("link", name="Write one like this").click()
    page.get_by_role("button", name="Write", exact=True).click()
    expect(page.get_by_text("Written as event")).to_be_visible()
    copies = json.loads(server.post("/rpc", read), parse_int=str, parse_float=str)
    equal(len(copies), 2)
    equal(copies[0][4], copies[1][4])
    equal(copies[1][4]["n"], "12345678901234567890123")
    page.get_by_role("button", name="Add a condition").click()
    page.get_by_role("combobox", name="Kind of condition").select_option("version")
    page.get_by_label("Version; -1 if it must not exist").fill("one")
    page.get_by_role("button", name="Write", exact=True).click()
    expect(page.get_by_text("not a whole number").first).to_be_visible()
    equal(len(server.rpc("stream.get", "exact-1")), 2)
    server.commit(state=[["SET", "digits", "{" + numbers + "}"]])
    open_page(page, server, "#/state?key=digits")
    value = page.get_by_role("region", name="Value", exact=True)
    for digits in ["12345678901234567890123", "1e400", "1.0"]:
        expect(value).to_contain_text(digits)


def a_command_is_read_whole_and_asked_for(page: Page, watcher: Watcher, server: Server) -> None:
    def reply(command: str):
        return server.commit(state=[command.split()])["state"][0]

    open_page(page, server, "#/state")
    line = page.get_by_label("A state command")
    region = page.get_by_role("region", name="Command", exact=True)
    for typed, stored in [
        (r'"a\nb \x41\"c"', 'a\nb A"c'),
        (r"'it\'s \n'", r"it's \n"),
        (r'"\xff\x00"', {"$base64": "/wA="}),
        ("é", "é"),
    ]:
        line.fill(f"SET typed {typed}")
        page.keyboard.press("Enter")
        expect(line).to_have_value("")
        expect(region.get_by_text(f"SET typed {typed}", exact=True)).to_be_visible()
        equal(reply("GET typed"), stored)
    for wrong in ['SET typed "open', "SET typed 'open", 'SET typed a"b"', 'SET typed "a"b']:
        line.fill(wrong)
        page.keyboard.press("Enter")
        expect(page.get_by_text("Not sent.")).to_be_visible()
        expect(line).to_have_value(wrong)
        equal(reply("GET typed"), "é")
    line.fill("")
    page.keyboard.press("ArrowUp")
    expect(line).to_have_value("SET typed é")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    expect(line).to_have_value("SET typed é")
    keys = reply("DBSIZE")
    for command, name in [("FLUSHALL", "default"), ("seats.init x", "x"), ("DEL typed", "typed")]:
        line.fill(command)
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("cannot be undone")
        dialog.get_by_role("textbox").fill(f"{name}!")
        expect(dialog.get_by_role("button", name="Run")).to_be_disabled()
        if command != "DEL typed":
            dialog.get_by_role("button", name="Close").click()
            expect(dialog).to_have_count(0)
            equal(reply("DBSIZE"), keys)
            continue
        dialog.get_by_role("textbox").fill(name)
        dialog.get_by_role("button", name="Run").click()
        expect(dialog).to_have_count(0)
        expect(region.get_by_text("DEL typed", exact=True)).to_be_visible()
        equal(reply("DBSIZE"), keys - 1)


TESTS = [what_is_typed_is_stored_as_it_is, a_command_is_read_whole_and_asked_for]
