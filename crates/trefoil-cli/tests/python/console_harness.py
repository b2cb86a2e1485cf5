"""What the tests of the console stand on: servers, a watch over the page, and commands that it offers."""

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from checks import check
from playwright.sync_api import Locator, Page, expect

BINARY = sys.argv[1]
TOKEN = "ns_ZGVmYXVsdA_" + "0" * 64
# A busy machine takes longer; what takes longer still has failed.
ANSWER_SECONDS = int(os.environ.get("ANSWER_SECONDS", "30"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server that can be killed and started again on the same data and the same ports."""

    def __init__(self, mode: str, *flags: str) -> None:
        self.data = tempfile.TemporaryDirectory()
        self.port, self.resp_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.command = [BINARY, mode, "--port", str(self.port), "--resp-port", str(self.resp_port)]
        place = "--cache-dir" if "--storage" in flags else "--data-dir"
        self.command += ["--grpc-port", "off", "--log-level", "error", place, self.data.name]
        self.command += flags
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        atexit.register(self.process.kill)
        end = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < end:
            try:
                urllib.request.urlopen(f"{self.url}/health").close()
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server does not answer")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def post(self, path: str, body: bytes):
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return urllib.request.urlopen(urllib.request.Request(self.url + path, body, headers)).read()

    def rpc(self, *call):
        return json.loads(self.post("/rpc", json.dumps(call).encode()))

    def commit(self, **commit):
        return self.rpc("commit", commit)


class Watcher:
    """What must not happen on any page: errors, and requests to other hosts."""

    def __init__(self, page: Page, server: Server) -> None:
        self.page, self.server, self.wrong = page, server, []
        # Whether refusals are expected, how many of them the browser has yet to report, and the
        # requests meanwhile that are not answered.
        self.expected, self.unreported, self.under_way = False, 0, set()
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("console", self.console)
        page.on("request", self.request)
        page.on("response", self.response)
        page.on("requestfinished", lambda request: self.under_way.discard(request))
        page.on("requestfailed", lambda request: self.under_way.discard(request))
        page.on("dialog", lambda dialog: self.wrong.append("a dialog"))

    def console(self, message) -> None:
        if message.type != "error":
            return
        # The browser itself reports every refused request; refusals that a test asks for are no errors.
        if "Failed to load" in message.text and self.expected:
            self.unreported -= 1
            return
        self.wrong.append(message.text)

    def response(self, response) -> None:
        if self.expected and response.status >= 400:
            self.unreported += 1

    def request(self, request) -> None:
        if self.expected and request.url.endswith("/rpc"):
            self.under_way.add(request)
        if not request.url.startswith(self.server.url):
            self.wrong.append(f"asked {request.url}")
        if TOKEN in request.url or "ns_" in request.url:
            self.wrong.append("a token in an address")

    @contextmanager
    def refusals(self):
        """Expects refusals, until the browser has reported all of them: it does not do so at once."""
        self.expected, self.unreported = True, 0
        yield
        end = time.monotonic() + ANSWER_SECONDS
        while self.under_way or self.unreported > 0:
            check(time.monotonic() < end, "not reported", self.unreported, self.under_way)
            self.page.wait_for_timeout(20)
        self.expected = False

    def check(self) -> None:
        check(not self.wrong, self.wrong)


def open_page(page: Page, server: Server, link: str) -> None:
    page.goto(f"{server.url}/{link}")
    expect(page.get_by_role("main").get_by_role("heading", level=1)).to_be_visible()


@contextmanager
def written_to(server: Server, seconds: float):
    """Somebody writes all the time."""
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.wait(seconds * (1 + number % 7)):
            number += 1
            event = {"type": "Written", "data": {"number": number}}
            server.commit(
                events=[{**event, "stream": f"load-{part}"} for part in range(1 + number % 3)]
            )
            server.rpc("stream.get", "load-1", {"direction": "backwards", "batchSize": 10})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


def wait_for_subscribers(server: Server, number: int) -> None:
    """A subscription begins a moment after its page is there."""
    end = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < end:
        metrics = urllib.request.urlopen(f"{server.url}/metrics").read().decode()
        if f"\ntrefoil_subscribers {number}\n" in metrics:
            return
        time.sleep(0.05)
    raise AssertionError("nobody subscribes")


def offered(commands: Locator, language: str, wanted: str) -> None:
    """A command that the page offers does what it says."""
    commands.get_by_role("button", name=language, exact=True).click()
    text = commands.locator("pre").inner_text()
    check("ns_" not in text, "there is no token in it")
    command = ["sh", "-c", text.replace("trefoil ", f"{BINARY} ", 1) if language == "CLI" else text]
    if language == "Python":
        command = [sys.executable, "-B", "-c", f"{text}\nprint(events)"]
    clients = Path(__file__).parents[4] / "clients/python/src"
    environment = {**os.environ, "TREFOIL_TOKEN": TOKEN, "PYTHONPATH": str(clients)}
    said = subprocess.run(command, capture_output=True, text=True, env=environment)
    check(wanted in said.stdout, text, said)
