"""What watching costs: `console_cost.py binary [seconds]`.

A server gets the same load three times: watched by nobody, by the overview of the console, and by its
live tail. Prints the processor time of the server in each case. The browser takes time of its own, on
the machine of whoever looks.
"""

import http.client
import json
import os
import sys
import threading
import time
from pathlib import Path

from console_harness import TOKEN, Server, open_page, wait_for_subscribers
from playwright.sync_api import sync_playwright

SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 20
COMMITS_PER_SECOND, ROUNDS, SETTLE_SECONDS = 200, 3, 3
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
VIEWS = {"nobody": None, "overview": "#/overview", "tail": "#/tail"}


def processor_seconds(pid: int) -> float:
    """The time that a process has had, in its own code and in the kernel."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(server: Server) -> int:
    """Commits one event at a time over one connection, at a fixed rate; returns how many."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    event = {"stream": "load-1", "type": "Written", "data": {"text": "x" * 200}, "tags": ["load:1"]}
    body = json.dumps(["commit", {"events": [event]}])
    began, number = time.monotonic(), 0
    while number < SECONDS * COMMITS_PER_SECOND:
        time.sleep(max(0.0, began + number / COMMITS_PER_SECOND - time.monotonic()))
        connection.request("POST", "/rpc", body, headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
        number += 1
    return number


def measure(server: Server) -> tuple[float, int]:
    """The processor time of the server for the load, and the number of commits."""
    before = processor_seconds(server.process.pid)
    number = load(server)
    return processor_seconds(server.process.pid) - before, number


def watched(page, server: Server, link: str | None) -> tuple[float, int]:
    if link is None:
        page.goto("about:blank")
    else:
        open_page(page, server, link)
    wait_for_subscribers(server, 1 if link == VIEWS["tail"] else 0)
    page.wait_for_timeout(SETTLE_SECONDS * 1000)
    result = []
    loading = threading.Thread(target=lambda: result.append(measure(server)))
    loading.start()
    while loading.is_alive():
        # The page lives on while the load runs.
        page.wait_for_timeout(200)
    return result[0]


def main() -> None:
    server = Server("dev")
    spent = {name: [] for name in VIEWS}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        for _ in range(ROUNDS):
            for name, link in VIEWS.items():
                seconds, number = watched(page, server, link)
                spent[name].append(seconds)
        browser.close()
    server.kill()
    print(f"{number} commits in {SECONDS:.0f} s, {ROUNDS} rounds: processor time of the server")
    for name, seconds in spent.items():
        middle = sorted(seconds)[len(seconds) // 2]
        each = ", ".join(f"{one:.2f}" for one in seconds)
        print(f"{name:10} {middle:.2f} s   ({each})")


main()
