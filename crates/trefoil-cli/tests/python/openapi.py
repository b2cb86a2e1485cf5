"""The description of the HTTP API, compared with what a server takes and answers.

Usage: openapi.py URL ADMIN_TOKEN EXCHANGES. Each line of the file is an exchange of the conformance
cases: method, path, body, status, content type, body. Prints "ok" and the number of checks, or fails.

- The description is valid OpenAPI 3.1, and its examples are as their schemas say.
- Every answer is as the description says, and every method and endpoint has been asked.
- What is not so is refused: each answer is changed in every place, and each request that the
  description refuses is refused by the server.
"""

import copy
import http.client
import json
import sys
import urllib.parse
import urllib.request

from checks import check, done, equal
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

URL, ADMIN, EXCHANGES = sys.argv[1:]
# What the server keeps or says as it came: any change of it is as good as it was.
FREE = {"data", "metadata", "meta", "state", "details", "message"}


CONNECTION = http.client.HTTPConnection(urllib.parse.urlsplit(URL).netloc, timeout=60)


def ask(path, body=None, headers={}, method="GET"):
    """Status, headers and body of an answer."""
    CONNECTION.request(method, path, body=body, headers=headers)
    answer = CONNECTION.getresponse()
    return answer.status, answer.headers, answer.read()


def closed(schema):
    """The same schema, which allows no field that it does not name: a description that leaves
    something out is noticed, while clients may still be sent more one day."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {name: closed(part) for name, part in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        schema.setdefault("additionalProperties", False)
    if "prefixItems" in schema:
        schema.setdefault("items", False)
    return schema


class Description:
    def __init__(self, document):
        self.document = document
        self.methods = document["paths"]["/rpc"]["post"]["x-methods"]
        own = {error for method in self.methods.values() for error in method["errors"]}
        codes = document["components"]["schemas"]["ErrorCode"]["enum"]
        self.common = set(codes) - own
        self.open, self.closed = self.registry(document), self.registry(closed(document))

    @staticmethod
    def registry(document):
        resource = Resource.from_contents(document, default_specification=DRAFT202012)
        return Registry().with_resource("openapi:", resource)

    def validator(self, pointer, strict=True):
        registry = self.closed if strict else self.open
        check_format = Draft202012Validator.FORMAT_CHECKER
        return Draft202012Validator(
            {"$ref": "openapi:" + pointer}, registry=registry, format_checker=check_format)

    def schema(self, name, strict=True):
        return self.validator(f"#/components/schemas/{name}", strict)

    def response(self, path, method, status, content_type):
        """The validator of an answer, which must be one of those that are described."""
        answers = self.document["paths"][path][method]["responses"]
        name = next((name for name in (str(status), f"{status // 100}XX") if name in answers), None)
        check(name, "no such status", path, method, status)
        pointer = f"#/paths/{path.replace('/', '~1')}/{method}/responses/{name}"
        answer = answers[name]
        if "$ref" in answer:
            pointer = answer["$ref"]
            answer = self.document["components"]["responses"][pointer.rsplit("/", 1)[1]]
        kinds = {kind.split(";")[0]: kind for kind in answer["content"]}
        kind = kinds.get(content_type.split(";")[0], kinds.get("*/*"))
        check(kind, "no such content", path, status, content_type)
        kind = kind.replace("/", "~1").replace(" ", "%20")
        return self.validator(f"{pointer}/content/{kind}/schema")


def text_of(body):
    return body.decode() if isinstance(body, bytes) else body


def values(content_type, text):
    """The JSON values of an answer: one, one per line, or one per server-sent event."""
    if "json" not in content_type and "event-stream" not in content_type:
        return []
    if content_type.startswith("application/json"):
        return [json.loads(text)]
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line[:1] in ("{", "d")]
    return [json.loads(line) for line in lines]


def is_row(value):
    """Whether this is an event as an array."""
    return isinstance(value, list) and 7 <= len(value) <= 9 and isinstance(value[0], str)


def free_in_row(row):
    """Where data and metadata are; a row has the name of its stream before the type or not."""
    return (5, 6) if isinstance(row[2], str) else (4, 5)


def places(value, path=()):
    """Every place in a value whose change must be noticed."""
    yield path
    if isinstance(value, dict):
        for name, part in value.items():
            if name not in FREE:
                yield from places(part, (*path, name))
    elif isinstance(value, list):
        parts = enumerate(value if is_row(value) else value[:3])
        for index, part in parts:
            if not (is_row(value) and index in free_in_row(value)):
                yield from places(part, (*path, index))


def changed(value, path, new):
    """The value with another one at a place, or with nothing there."""
    if not path:
        return new
    value = copy.copy(value)
    if new is not ABSENT or len(path) > 1:
        value[path[0]] = changed(value[path[0]], path[1:], new)
    else:
        del value[path[0]]
    return value


ABSENT = object()
WRONG = [["unlike"], "anything"]


def tightness(validator, value):
    """How many changes of a valid value were tried; each must be refused."""
    n_changes = 0
    for path in places(value):
        n_changes += 1
        check(not validator.is_valid(changed(value, path, WRONG)), "too wide", path, value)
        is_optional = bool(path) and (path[-1] in OPTIONAL or "quotas" in path)
        if path and isinstance(path[-1], str) and not is_optional:
            without = changed(value, path, ABSENT)
            check(not validator.is_valid(without), "may be absent", path, value)
    return n_changes


# Fields that an answer need not have, besides all quotas.
OPTIONAL = {"tags", "tracking", "refusesWrites", "refusingWrites", "section", "secret", "owner"}
# Of a change of the state: what is told of an entry depends on what is known of it.
OPTIONAL |= {"key", "keys", "collection", "expiresAt", "score", "bytes"}


def valid(validator, value, *where):
    errors = sorted(validator.iter_errors(value), key=lambda error: len(error.path))
    check(not errors, *where, value, [error.message for error in errors[:3]])


def method_of(body):
    """The method that a request names, if it is a call."""
    try:
        call = json.loads(body)
    except ValueError:
        return None, None
    is_call = isinstance(call, list) and call and isinstance(call[0], str)
    return (call, call[0]) if is_call else (None, None)


class Calls:
    """Exchanges of `/rpc`."""

    def __init__(self, description):
        self.description = description
        self.succeeded, self.n_changes = {}, 0

    def take(self, body, status, answer):
        call, method = method_of(body)
        known = self.description.methods.get(method)
        if status != 200:
            code = answer["error"]["code"]
            allowed = self.description.common | set(known["errors"] if known else ())
            check(code in allowed, "an error that is not described", call, code)
            return
        check(known, "a method that is not described", call)
        if not has_null(call[1:]) and len(call) <= 1 + self.n_arguments(method):
            valid(self.description.schema("Call"), call, "the request")
            self.succeeded.setdefault(method, set()).add(json.dumps(call))
        validator = self.description.schema(f"{method}.result")
        valid(validator, answer, "the answer of", call)
        self.n_changes += tightness(validator, answer)

    def n_arguments(self, method):
        schema = self.description.document["components"]["schemas"][method]
        return len(schema["prefixItems"]) - 1

    def samples(self):
        """A few requests of each method that are not long, those with the most in them first."""
        for calls in self.succeeded.values():
            short = sorted((call for call in calls if len(call) < 1000), key=len, reverse=True)
            yield from short[:5]

    def compare_refusals(self):
        """Requests that are changed so that the description refuses them are refused by the server."""
        headers = {"Authorization": f"Bearer {ADMIN}"}
        schema, n_refused = self.description.schema("Call", strict=False), 0
        for call in map(json.loads, self.samples()):
            for path in places(call):
                for new in (WRONG, ABSENT):
                    if not path or path == (0,) or (new is ABSENT and isinstance(path[-1], int)):
                        continue
                    request = changed(call, path, new)
                    if schema.is_valid(request):
                        continue
                    status, _, _ = ask("/rpc", json.dumps(request), headers, "POST")
                    check(status in (400, 403, 404), "the server takes", request, status)
                    n_refused += 1
        return n_refused


def has_null(value):
    """Whether something is null where it means that it is not given. In data it means itself."""
    if isinstance(value, dict):
        return any(has_null(part) for name, part in value.items() if name != "data")
    return value is None or (isinstance(value, list) and any(map(has_null, value)))


def check_document(text):
    document = json.loads(text)
    OpenAPIV31SpecValidator(document).validate()
    description = Description(document)
    for name, method in description.methods.items():
        example = document["paths"]["/rpc"]["post"]["requestBody"]["content"]["application/json"][
            "examples"][name]["value"]
        valid(description.schema("Call"), example, "the example of", name)
        result = document["components"]["schemas"][f"{name}.result"]["examples"][0]
        valid(description.schema(f"{name}.result"), result, "the example of", name)
        check(set(method["errors"]) <= set(document["components"]["schemas"]["ErrorCode"]["enum"]), name)
    return description


def check_serving():
    """The description is open, is compressed, and is not sent again to whoever has it."""
    status, headers, body = ask("/openapi.json")
    equal((status, headers["Content-Type"]), (200, "application/json"))
    again, _, nothing = ask("/openapi.json", headers={"If-None-Match": headers["ETag"]})
    equal((again, nothing), (304, b""))
    _, packed, less = ask("/openapi.json", headers={"Accept-Encoding": "gzip"})
    equal(packed["Content-Encoding"], "gzip")
    check(len(less) < len(body) / 3, len(less), len(body))
    equal(ask("/openapi.json", "", method="POST")[0], 405)
    return body


def stream(path, n_messages):
    """The first messages of a subscription."""
    request = urllib.request.Request(URL + path, headers={"Authorization": f"Bearer {ADMIN}"})
    found = []
    with urllib.request.urlopen(request, timeout=30) as answer:
        kind = answer.headers["Content-Type"]
        while len(found) < n_messages:
            line = answer.readline().decode()
            if line.startswith("data: "):
                found.append(json.loads(line[6:]))
    return kind, found


def check_subscriptions(description):
    headers = {"Authorization": f"Bearer {ADMIN}"}
    events = {"events": [{"stream": "described-1", "type": "T", "data": {}, "tags": ["x"]}] * 2}
    ask("/rpc", json.dumps(["commit", events]), headers, "POST")
    n_changes = 0
    for path in ("/events?category=described", "/events?category=described&as=objects", "/subscribe?category=described"):
        kind, found = stream(path, 2)
        validator = description.response(path.split("?")[0], "get", 200, kind)
        for value in found:
            valid(validator, value, path)
            n_changes += tightness(validator, value)
    return n_changes


def check_backup(description):
    """A backup is bytes, and what is refused is an error as any other."""
    headers = {"Authorization": f"Bearer {ADMIN}"}
    for path, expected in (("/backup", 200), ("/backup?after=x", 400), ("/backup?namespace=none", 404)):
        status, answered, body = ask(path, headers=headers)
        equal(status, expected)
        validator = description.response("/backup", "get", status, answered["Content-Type"])
        for value in values(answered["Content-Type"], text_of(body) if status != 200 else ""):
            valid(validator, value, path)
        check(status != 200 or body.startswith(b"H"), body[:10])


def main():
    description = check_document(check_serving())
    calls, n_changes = Calls(description), 0
    seen = {"/openapi.json", "/events", "/subscribe", "/backup"}
    check_backup(description)
    for line in open(EXCHANGES, encoding="utf-8"):
        method, path, body, status, content_type, answer = json.loads(line)
        path = path.split("?")[0]
        path = "/console/{file}" if path.startswith("/console/") else path
        if path not in description.document["paths"]:
            continue
        operation = method.lower()
        if operation not in description.document["paths"][path]:
            check(status == 405, method, path, status)
            continue
        validator = description.response(path, operation, status, content_type)
        seen.add(path)
        for value in values(content_type, answer):
            valid(validator, value, method, path, status)
            if path == "/rpc":
                calls.take(body, status, value)
            elif path != "/openapi.json":
                n_changes += tightness(validator, value)
    n_changes += check_subscriptions(description)
    missing = set(description.methods) - set(calls.succeeded)
    check(not missing, "methods that were not called", missing)
    missing = set(description.document["paths"]) - seen
    check(not missing, "endpoints that were not asked", missing)
    n_refused = calls.compare_refusals()
    check(n_refused > 300, n_refused)
    check(calls.n_changes + n_changes > 1000, calls.n_changes, n_changes)
    done(f"{calls.n_changes + n_changes} changed answers and {n_refused} changed requests refused")


main()
