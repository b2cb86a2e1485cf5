"""A server with a certificate, and clients over TLS: `tls.py binary token authority http grpc resp`.

Each is served if it is given the authority that vouches for the server, and not otherwise.
"""

import os
import socket
import ssl
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
sys.path[:0] = [str(ROOT / "clients/python/src"), str(ROOT / "target/redis-py-8")]

import redis
import umadb
from checks import check, done, equal, refused
from trefoil_client import Trefoil, Unavailable

BINARY, TOKEN, AUTHORITY = sys.argv[1:4]
HTTP, GRPC, RESP = map(int, sys.argv[4:7])
URL = f"https://localhost:{HTTP}"


def succeeds(*command: str, **environment: str) -> bool:
    plain = {name: value for name, value in os.environ.items() if name != "SSL_CERT_FILE"}
    plain["XDG_CONFIG_HOME"] = "/nonexistent"
    ran = subprocess.run(command, env={**plain, **environment}, capture_output=True, timeout=60)
    return ran.returncode == 0


def the_client_for_python() -> None:
    with Trefoil(URL, TOKEN, verify=ssl.create_default_context(cafile=AUTHORITY)) as db:
        db.commit(events=[{"stream": "account-1", "type": "Opened", "data": {}, "tags": ["a:1"]}])
        equal([event.type for event in db.read({"stream": "account-1"})], ["Opened"])
    with Trefoil(URL, TOKEN, retry_seconds=0) as db:
        refused(Unavailable, "CERTIFICATE_VERIFY_FAILED", lambda: list(db.read({"stream": "a-1"})))


def the_client_for_typescript() -> None:
    program = f"""
        import {{ Trefoil }} from '{ROOT}/clients/typescript/trefoil.js';
        const db = new Trefoil({{ url: '{URL}', token: process.env.TOKEN, retrySeconds: 0 }});
        for await (const event of db.read({{ stream: 'account-1' }})) console.log(event.type);"""
    command = ["node", "--input-type=module", "-e", program]
    check(succeeds(*command, TOKEN=TOKEN, NODE_EXTRA_CA_CERTS=AUTHORITY), "node with authority")
    check(not succeeds(*command, TOKEN=TOKEN), "node without authority")


def the_command_line() -> None:
    read = [BINARY, "read", "account-1", "--url", URL]
    check(succeeds(*read, "--cacert", AUTHORITY, TREFOIL_TOKEN=TOKEN), "--cacert")
    check(succeeds(*read, TREFOIL_TOKEN=TOKEN, TREFOIL_CACERT=AUTHORITY), "TREFOIL_CACERT")
    check(succeeds(*read, TREFOIL_TOKEN=TOKEN, SSL_CERT_FILE=AUTHORITY), "SSL_CERT_FILE")
    check(not succeeds(*read, TREFOIL_TOKEN=TOKEN), "without authority")
    check(succeeds(BINARY, "ready", "--url", URL, "--cacert", AUTHORITY), "ready")


def curl() -> None:
    for version in ("--http1.1", "--http2"):
        command = ["curl", "-sf", version, f"{URL}/health"]
        check(succeeds(*command, "--cacert", AUTHORITY), version)
        check(not succeeds(*command), version, "without authority")


def clients_of_umadb() -> None:
    client = umadb.Client(f"https://localhost:{GRPC}", ca_path=AUTHORITY, api_key=TOKEN)
    equal(client.head(), 1)


def clients_of_redis() -> None:
    client = redis.Redis(
        "localhost", RESP, password=TOKEN, ssl=True, ssl_ca_certs=AUTHORITY, protocol=3
    )
    large = b"x" * 300_000
    client.set("large", large)
    with client.pipeline() as pipeline:
        for number in range(1000):
            pipeline.set(f"key:{number}", number)
            pipeline.get("large")
        answers = pipeline.execute()
    equal(answers[1::2], [large] * 1000)
    stranger = redis.Redis("localhost", RESP, password=TOKEN, ssl=True, retry=None)
    refused(redis.ConnectionError, "certificate verify failed", lambda: stranger.get("large"))


def plain_text() -> None:
    for port, sent in (
        (HTTP, b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        (RESP, b"PING\r\n"),
        (GRPC, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=30) as plain:
            plain.sendall(sent)
            answer = plain.recv(100)
        # At most an alert of TLS.
        check(not answer or answer[0] == 0x15, port, answer)


the_client_for_python()
the_client_for_typescript()
the_command_line()
curl()
clients_of_umadb()
clients_of_redis()
plain_text()
done("of TLS")
