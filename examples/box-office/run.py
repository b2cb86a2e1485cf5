#!/usr/bin/env python3
"""Starts the box office with all that it needs: Trefoil, if none is running, and the service.

    python3 examples/box-office/run.py

It needs Python 3.10 and, to build Trefoil, Rust. What it installs and stores is in `target`.
"""

import argparse
import importlib.metadata
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OWN = ROOT / "target" / "box-office"
START_SECONDS = 60


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def wait_for(url: str, process: subprocess.Popen, name: str) -> None:
    end = time.monotonic() + START_SECONDS
    while not answers(url):
        if process.poll() is not None:
            sys.exit(f"{name} ended with status {process.returncode}; what it said is above")
        if time.monotonic() > end:
            sys.exit(f"{name} does not answer at {url} after {START_SECONDS} seconds")
        time.sleep(0.05)


def build() -> Path:
    """The server, as it is in this checkout."""
    print("building Trefoil (the first time takes some minutes) …", flush=True)
    build = ["cargo", "build", "--release", "--quiet", "--package", "trefoil-cli"]
    try:
        subprocess.run(build, cwd=ROOT, check=True)
    except FileNotFoundError:
        sys.exit("there is no cargo to build Trefoil with: install Rust, or give --binary")
    except subprocess.CalledProcessError:
        sys.exit("Trefoil does not build; what cargo said is above")
    return ROOT / "target" / "release" / "trefoil"


def has_packages(required: str) -> bool:
    """Whether this Python has what the lines `package==version` require."""
    pins = [line.split("==") for line in required.splitlines() if "==" in line]
    try:
        return all(importlib.metadata.version(package) == version for package, version in pins)
    except importlib.metadata.PackageNotFoundError:
        return False


def python() -> Path:
    """A Python that has the packages: this one, or one of our own."""
    requirements = HERE / "requirements.txt"
    required = requirements.read_text()
    if has_packages(required):
        return Path(sys.executable)
    executable = OWN / "python" / "bin" / "python3"
    installed = OWN / "python" / "installed.txt"
    if not installed.exists() or installed.read_text() != required:
        print("installing redis and aiohttp into a virtual environment …", flush=True)
        venv.create(OWN / "python", with_pip=True)
        install = [executable, "-m", "pip", "install", "--quiet", "--requirement", requirements]
        if subprocess.run(install).returncode != 0:
            sys.exit("pip could not install the packages; what it said is above")
        installed.write_text(required)
    return executable


def start_trefoil(given: argparse.Namespace) -> subprocess.Popen:
    binary = given.binary or build()
    arguments = ["--port", given.http_port, "--resp-port", given.resp_port, "--grpc-port", "off"]
    data = ["--data-dir", given.data or OWN / "data", "--log-level", "warn"]
    command = [str(word) for word in [binary, "dev", *arguments, *data]]
    try:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL)
    except OSError as error:
        sys.exit(f"cannot start {binary}: {error}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8000, help="port of the page [8000]")
    parser.add_argument("--http-port", type=int, default=8080, help="Trefoil's HTTP port [8080]")
    parser.add_argument("--resp-port", type=int, default=6666, help="Trefoil's RESP port [6666]")
    parser.add_argument("--binary", help="the trefoil to start, instead of building it")
    parser.add_argument("--data", help="where it keeps its data [target/box-office/data]")
    given = parser.parse_args()
    # A polite end of this process ends what it has started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    trefoil, page = f"http://127.0.0.1:{given.http_port}", f"http://127.0.0.1:{given.port}"
    if answers(page):
        sys.exit(f"something else answers at {page}: give another --port")
    started = []
    try:
        if answers(f"{trefoil}/health"):
            print(f"using the Trefoil at {trefoil}")
        else:
            started.append(start_trefoil(given))
            wait_for(f"{trefoil}/health", started[-1], "Trefoil")
        ports = ["--port", str(given.port), "--resp-port", str(given.resp_port)]
        service = [python(), HERE / "service.py", "--trefoil", trefoil, *ports]
        started.append(subprocess.Popen(service))
        wait_for(page, started[-1], "the service")
        print(f"\n  The box office is open:  {page}\n\n  Ctrl-C closes it.", flush=True)
        sys.exit(f"the service ended with status {started[-1].wait()}")
    except KeyboardInterrupt:
        pass
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
