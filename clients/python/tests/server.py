"""A server that tests kill and start again at the same address."""

import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

TOKEN = "ns_ZGVmYXVsdA_0000000000000000000000000000000000000000000000000000000000000000"
BINARY = os.environ.get("TREFOIL_BINARY", "trefoil")


class Server:
    def __init__(self):
        self.directory = tempfile.TemporaryDirectory()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        arguments = ["serve", "--data-dir", self.directory.name, "--token", TOKEN]
        ports = ["--port", str(self.port), "--grpc-port", "off", "--resp-port", "off"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([BINARY, *arguments, *ports], **quiet)
        for _ in range(1000):
            try:
                urllib.request.urlopen(self.url + "/ready", timeout=5).close()
                return
            except OSError:
                assert self.process.poll() is None, "the server ended"
                time.sleep(0.01)
        raise AssertionError("the server did not start")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.kill()
        self.directory.cleanup()
