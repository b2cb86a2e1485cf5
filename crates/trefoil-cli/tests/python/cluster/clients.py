"""Unmodified clients of one namespace, and what their answers mean.

HTTP is the standard library, gRPC the package umadb, RESP the package redis. Every answer is one of
three: a result, `Refused` (certainly not executed), or `Unknown` (it may have been). Everything else,
such as damage or a token that is suddenly wrong, is `Broken` and ends the test.
"""

import http.client
import json
import random
import ssl
import time

import redis
import redis.exceptions
import umadb


class Refused(Exception):
    """Certainly not executed."""


class Unknown(Exception):
    """Executed or not: nobody knows."""


class Broken(Exception):
    """What no fault of a node, a store or a network explains."""


class Authority:
    """Vouches for all nodes."""

    FILE = None


class Http:
    """Keeps one connection. A request is sent once."""

    # A write may have been made after these; after all others it was not.
    UNKNOWN = {"OUTCOME_UNKNOWN"}
    REFUSED = {"WRONG_NODE", "CLOSED", "OVERLOADED", "BACKEND_ERROR"}

    def __init__(self, node, token, timeout):
        self.token = token
        self.connection = http.client.HTTPSConnection(
            "localhost",
            node["http"],
            timeout=timeout,
            context=ssl.create_default_context(cafile=Authority.FILE),
        )

    def call(self, *call):
        response = self.request("POST", "/rpc", json.dumps(call))
        return json.loads(self.receive(response.read))

    def request(self, method, path, body=None):
        """Returns a response whose status is 200, with a body that is not read yet."""
        try:
            if self.connection.sock is None:
                self.connection.connect()
        except OSError as error:
            raise Refused(f"connect: {error}") from error
        headers = {"Authorization": f"Bearer {self.token}"}
        self.receive(lambda: self.connection.request(method, path, body, headers))
        response = self.receive(self.connection.getresponse)
        if response.status != 200:
            self.fail(response.status, self.receive(response.read))
        return response

    def receive(self, step):
        try:
            return step()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise Unknown(f"{type(error).__name__}: {error}") from error

    def fail(self, status, body):
        try:
            code = json.loads(body)["error"]["code"]
        except ValueError:
            code = None
        text = f"{status} {body.decode()}"
        raise (Refused if code in self.REFUSED else Unknown if code in self.UNKNOWN else Broken)(text)

    def close(self):
        self.connection.close()


class Grpc:
    """The published client of UmaDB; it sends a key over TLS only."""

    REFUSED = ("is on another node", "tcp connect error")

    def __init__(self, node, token, timeout):
        url = f"https://localhost:{node['grpc']}"
        self.client = self.call(lambda: umadb.Client(url, ca_path=Authority.FILE, api_key=token))

    def call(self, step):
        try:
            return step()
        except StopIteration:
            raise
        except (umadb.AuthenticationError, umadb.CorruptionError, umadb.IntegrityError) as error:
            raise Broken(repr(error)) from error
        except Exception as error:
            refused = any(text in str(error) for text in self.REFUSED)
            raise (Refused if refused else Unknown)(repr(error)) from error

    def close(self):
        pass


class Resp:
    """redis-py, which sends a command again when a connection breaks unless it is told not to."""

    def __init__(self, node, token, timeout):
        self.redis = redis.Redis(
            port=node["resp"],
            ssl=True,
            ssl_ca_certs=Authority.FILE,
            password=token,
            socket_timeout=timeout,
            retry=None,
            decode_responses=True,
        )

    def call(self, step):
        try:
            return step(self.redis)
        except redis.exceptions.AuthenticationError as error:
            raise Broken(repr(error)) from error
        except redis.exceptions.ResponseError as error:
            raise self.refusal(error) from error
        except (redis.exceptions.RedisError, OSError) as error:
            connects = "connecting to" in str(error)
            raise (Refused if connects else Unknown)(repr(error)) from error

    @staticmethod
    def refusal(error):
        text = str(error)
        if text.startswith("UNKNOWN"):
            return Unknown(text)
        # What begins with `ERR` comes without that word: the store could not be asked, for example.
        word = text.split(" ", 1)[0]
        refused = word in ("WRONGNODE", "BUSY", "READONLY") or not word.isupper()
        return Refused(text) if refused and "damaged" not in text else Broken(text)

    def close(self):
        self.redis.close()


class Route:
    """Where a client sends its requests: to one node until that does not do it, then to the next."""

    def __init__(self, nodes, kind, token, first, timeouts=(3,)):
        self.nodes, self.kind, self.token = nodes, kind, token
        self.number, self.timeouts = first, timeouts
        self.client = None

    def get(self):
        if self.client is None:
            node = self.nodes.get(self.number)
            self.client = self.kind(node, self.token, random.choice(self.timeouts))
        return self.client

    def drop(self):
        """The next request comes with a new connection, to the same node."""
        if self.client is not None:
            self.client.close()
        self.client = None

    def elsewhere(self):
        self.drop()
        self.number += 1
        time.sleep(0.05)


class Nodes:
    """The ports of all nodes, in a file that is replaced when one of them starts again."""

    def __init__(self, path):
        self.path = path

    def get(self, number):
        nodes = self.all()
        return nodes[number % len(nodes)]

    def all(self):
        with open(self.path) as file:
            return json.load(file)
