"""The packages, as far as they can be tried without what they are for: `packages.py binary`.

The files of the image are made and the program is run in them, with what the Dockerfile says of user,
environment and commands. The unit is checked by systemd's own tool, and the program tells a socket what
it tells systemd. What is for Compose and Kubernetes is compared with their schemas.
"""

import importlib.resources
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml
from checks import check, done, equal, refused
from dockerfile_parse import DockerfileParser

BINARY = Path(sys.argv[1]).resolve()
ROOT = Path(__file__).resolve().parents[4]
PACKAGING = ROOT / "packaging"
TOKEN = "a-token-of-the-packages"
PATIENCE_SECONDS = 60
# The better a unit is protected, the lower: 0 to 100.
EXPOSURE_MAX = "15"


class Image:
    """What the Dockerfile says, and the files that it makes."""

    def __init__(self, tree: Path):
        self.tree = tree
        with tempfile.TemporaryDirectory() as scratch:
            parser = DockerfileParser(scratch)
            parser.content = (PACKAGING / "docker/Dockerfile").read_text()
            self.steps = parser.structure
            self.environment = parser.envs
        subprocess.run(["sh", str(PACKAGING / "docker/tree.sh"), str(BINARY), str(tree)], check=True)

    def last(self, instruction: str) -> str:
        return [step["value"] for step in self.steps if step["instruction"] == instruction][-1]

    def start(self, command: list[str], **environment: str) -> subprocess.Popen:
        user, group = map(int, self.last("USER").split(":"))
        check(user != 0 and group != 0, "the image runs as root")
        return subprocess.Popen(
            [shutil.which("chroot"), f"--userspec={user}:{group}", str(self.tree), *command],
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def rpc(port: str, *request) -> object:
    sent = urllib.request.Request(
        f"http://127.0.0.1:{port}/rpc",
        json.dumps(request).encode(),
        {"Authorization": f"Bearer {TOKEN}"},
    )
    with urllib.request.urlopen(sent) as answer:
        return json.load(answer)


def the_image_has_all_that_the_program_needs(scratch: Path) -> None:
    image = Image(scratch / "tree")
    for source in (PACKAGING / "docker/tree.sh", ROOT / "Cargo.lock"):
        check(source.is_file(), "the build needs", source)
    check("packaging/docker/tree.sh" in image.last("RUN"), "the image has other files")
    port = free_port()
    ports = {"TREFOIL_PORT": port, "TREFOIL_GRPC_PORT": "0", "TREFOIL_RESP_PORT": "0"}
    health = image.last("HEALTHCHECK")
    health = json.loads(health[health.index("[") :])
    server = json.loads(image.last("ENTRYPOINT")) + json.loads(image.last("CMD"))

    def is_healthy() -> bool:
        asked = image.start(health, TREFOIL_URL=f"http://127.0.0.1:{port}")
        asked.communicate(timeout=PATIENCE_SECONDS)
        return asked.returncode == 0

    check(not is_healthy(), "nothing is healthy before it runs")
    for life in range(2):
        running = image.start(server, TREFOIL_TOKEN=TOKEN, **ports)
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not is_healthy():
                if running.poll() is not None:
                    raise AssertionError(("the server ended", life, running.communicate()))
                check(time.monotonic() < deadline, "the server does not become ready")
            rpc(port, "stream.write", "box-1", {"type": "Packed", "data": {"life": life}})
            equal(len(rpc(port, "stream.get", "box-1")), life + 1)
        finally:
            running.terminate()
            said, errors = running.communicate(timeout=PATIENCE_SECONDS)
        equal(running.returncode, 0)
        check(TOKEN not in said + errors, "the token is in the output")
    kept = image.tree / "var/lib/trefoil/_meta"
    check(kept.is_dir() and kept.stat().st_uid != 0, "the data is not where the volume is")


def the_unit_is_sound(scratch: Path) -> None:
    unit = (PACKAGING / "systemd/trefoil.service").read_text()
    here = scratch / "trefoil.service"
    here.write_text(unit.replace("/usr/bin/trefoil", str(BINARY)))
    for arguments in (
        ["verify", "--man=no"],
        ["security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager"],
    ):
        judged = subprocess.run(
            ["systemd-analyze", *arguments, str(here)], capture_output=True, text=True
        )
        equal((judged.returncode, judged.stderr), (0, ""))


def systemd_is_told_what_the_server_does(scratch: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(scratch / "notify"))
        told.settimeout(PATIENCE_SECONDS)
        server = subprocess.Popen(
            [str(BINARY), "serve", "--data-dir", str(scratch / "data"), "--port", "0"]
            + ["--grpc-port", "off", "--resp-port", "off"],
            env={
                **os.environ,
                "NOTIFY_SOCKET": str(scratch / "notify"),
                "WATCHDOG_USEC": "300000",
                "TREFOIL_TOKEN": TOKEN,
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            equal(told.recv(100).strip(), b"READY=1")
            for _ in range(3):
                equal(told.recv(100).strip(), b"WATCHDOG=1")
        finally:
            server.send_signal(signal.SIGTERM)
        last = b"WATCHDOG=1"
        while last == b"WATCHDOG=1":
            last = told.recv(100).strip()
        equal(last, b"STOPPING=1")
        equal(server.wait(PATIENCE_SECONDS), 0)


def check_start(where: Path, command: list[str], variables: dict[str, str]) -> None:
    """The program understands how it is started: each variable is a setting, and is shown as one."""
    image = (PACKAGING / "docker/Dockerfile").read_text()
    command = command or json.loads(re.findall(r"^CMD (.*)$", image, re.M)[-1])
    shown = subprocess.run(
        [str(BINARY), *command, "--print-config"], env=variables, capture_output=True, text=True
    )
    equal((where, shown.returncode, shown.stderr), (where, 0, ""))
    for name in variables:
        if name.startswith("TREFOIL_"):
            setting = name.removeprefix("TREFOIL_").lower().replace("_", "-")
            line = [line for line in shown.stdout.splitlines() if line.startswith(f"{setting} ")]
            check(line and name in line[0], where, "sets", name, "in vain")


def what_compose_is_given_is_sound() -> None:
    schemas = importlib.resources.files("check_jsonschema") / "builtin_schemas/vendor"
    schema = json.loads((schemas / "compose-spec.json").read_text())
    files = sorted((PACKAGING / "compose").glob("*.yaml"))
    check(files, "there are no files for Compose")
    for file in files:
        composed = yaml.safe_load(file.read_text())
        jsonschema.validate(composed, schema)
        n_servers = 0
        wrong = {**composed, "services": {"trefoil": {"imagge": "trefoil"}}}
        refused(jsonschema.ValidationError, "imagge", lambda: jsonschema.validate(wrong, schema))
        for service in composed["services"].values():
            for volume in service.get("volumes", []):
                source, _, target = volume.partition(":")
                if not target:
                    continue  # It has no name, and is nowhere else.
                is_there = (file.parent / source).exists()
                check(is_there or source in composed["volumes"], file, source, "is not there")
            if service["image"] == "trefoil":
                n_servers += 1
                variables = {
                    name: TOKEN if "${" in value else value
                    for name, value in service["environment"].items()
                }
                check_start(file, service.get("command", []), variables)
        check(n_servers in (1, 3), file, n_servers, "servers")


def what_kubernetes_is_given_is_sound() -> None:
    version = kubernetes_validate.latest_version()
    files = sorted((PACKAGING / "kubernetes").glob("*.yaml"))
    check(files, "there are no files for Kubernetes")
    for file in files:
        for document in yaml.safe_load_all(file.read_text()):
            kubernetes_validate.validate(document, version, strict=True)
            wrong = {**document, "spec": {**document["spec"], "replicaas": 1}}
            refused(
                kubernetes_validate.ValidationError,
                "replicaas",
                lambda: kubernetes_validate.validate(wrong, version, strict=True),
            )
            pod = document["spec"].get("template", {}).get("spec", {})
            for container in pod.get("containers", []):
                variables = {
                    variable["name"]: variable.get("value", TOKEN) for variable in container["env"]
                }
                if "TREFOIL_PEER_ADDRESS" in variables:
                    variables["TREFOIL_PEER_ADDRESS"] = "10.0.0.7"
                check_start(file, container.get("args", []), variables)


with tempfile.TemporaryDirectory() as directory:
    os.chmod(directory, 0o755)
    # Only root may look at a directory as if it were all there is.
    if os.geteuid() == 0:
        the_image_has_all_that_the_program_needs(Path(directory))
    the_unit_is_sound(Path(directory))
    systemd_is_told_what_the_server_does(Path(directory))
what_compose_is_given_is_sound()
what_kubernetes_is_given_is_sound()
done("of the packages")
