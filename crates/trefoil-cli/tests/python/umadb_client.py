"""The published client of UmaDB (package umadb, unmodified) against this server.

Usage: umadb_client.py URL [CA_FILE TOKEN WRONG_TOKEN]. Prints "ok" and the number of checks, or
fails. The namespace must be empty.
"""

import sys
import threading
import time
import uuid

import umadb
from checks import check, done, refused
from umadb import AppendCondition, Client, Event, Query, QueryItem, TrackingInfo

URL = sys.argv[1]
CA_FILE, TOKEN, WRONG_TOKEN = sys.argv[2:5] if len(sys.argv) > 2 else (None, None, None)


def connect(token=TOKEN, **options):
    return Client(URL, ca_path=CA_FILE, api_key=token, **options)


def tagged(*tags, types=None):
    return Query([QueryItem(types=types, tags=list(tags))])


def positions(response):
    events, head = response.collect_with_head()
    return [event.position for event in events], head


def appends(client):
    check(client.head() is None)
    check(positions(client.read()) == ([], None))
    ident = uuid.uuid4()
    event = Event("Opened", b"\x00\xff", tags=["b", "a"], uuid=ident, metadata={"k": "v", "l": "w"})
    check(client.append([event, Event("Opened", b'{"n": 1}', tags=["a"])]) == 2)
    first, second = client.read()
    check(first.position == 1 and first.event.event_type == "Opened")
    check(bytes(first.event.data) == b"\x00\xff" and first.event.tags == ["b", "a"])
    check(first.event.uuid == ident and first.event.metadata == {"k": "v", "l": "w"})
    check(bytes(second.event.data) == b'{"n": 1}' and second.event.uuid is None)
    check(second.event.metadata == {} and second.tracking_info is None)
    check(client.append([]) == 0 and client.head() == 2)
    refused(
        ValueError, "invalid argument: event type", lambda: client.append([Event("T" * 4097, b"")])
    )
    check(positions(client.read(limit=0)) == ([], None))


def conditions(client):
    """The log holds two events with the tag a."""
    known = AppendCondition(tagged("a"), after=client.head())
    check(client.append([Event("Changed", b"", tags=["a"])], condition=known) == 3)
    text = "integrity error: condition failed: the event at position 3 matches"
    refused(
        umadb.IntegrityError, text, lambda: client.append([Event("Changed", b"")], condition=known)
    )
    # What kills the writer of UmaDB: nothing to append, and a condition that fails.
    refused(umadb.IntegrityError, text, lambda: client.append([], condition=known))
    by_type = AppendCondition(Query([QueryItem(types=["Rare"])]))
    check(client.append([Event("Rare", b"")], condition=by_type) == 4)
    refused(umadb.IntegrityError, "4 matches", lambda: client.append([], condition=by_type))
    anything = AppendCondition(Query(), after=4)
    check(client.append([], condition=anything) == 0)
    # The same append again is recognised by its ids.
    once = AppendCondition(tagged("once"))
    event = Event("Once", b"", tags=["once"], uuid=uuid.uuid4())
    check(client.append([event], condition=once) == 5)
    check(client.append([event], condition=once) == 5)
    check(client.head() == 5)


def ids(client):
    """An id that is known is stored again unless a condition fails; the nil UUID is no id."""
    head = client.head()
    for ident in [uuid.uuid4(), uuid.UUID(int=0)]:
        tag = f"ids:{ident}"
        event = Event("Again", b"", tags=[tag], uuid=ident)
        check(client.append([event]) == head + 1 and client.append([event]) == head + 2)
        guarded = AppendCondition(tagged(tag))
        if ident.int:
            check(client.append([event], condition=guarded) == head + 1)
            check(client.append([event, event], condition=guarded) == head + 2)
        else:
            refused(umadb.IntegrityError, "", lambda: client.append([event], condition=guarded))
        head += 2
        check(client.head() == head)


def reads(client):
    """The log holds five events."""
    check(positions(client.read()) == ([1, 2, 3, 4, 5], 5))
    check(positions(client.read(start=3)) == ([3, 4, 5], 5))
    check(positions(client.read(start=6)) == ([], 5))
    check(positions(client.read(limit=2)) == ([1, 2], 2))
    check(positions(client.read(limit=0)) == ([], None))
    check(positions(client.read(backwards=True)) == ([5, 4, 3, 2, 1], 5))
    check(positions(client.read(backwards=True, limit=2)) == ([5, 4], 4))
    check(positions(client.read(start=3, backwards=True)) == ([3, 2, 1], 5))
    check(positions(client.read(tagged("a"))) == ([1, 2, 3], 5))
    check(positions(client.read(tagged("a", "b"))) == ([1], 5))
    check(positions(client.read(tagged("a", types=["Changed"]))) == ([3], 5))
    either = Query([QueryItem(tags=["b"]), QueryItem(types=["Opened", "Rare"])])
    check(positions(client.read(either)) == ([1, 2, 4], 5))
    small = connect(batch_size=2)
    response = small.read(limit=3)
    check([event.position for event in response.next_batch()] == [1, 2] and response.head() == 2)
    check([event.position for event in response.next_batch()] == [3] and response.head() == 3)
    check(response.next_batch() == [])


def many(client):
    """Long reads, and events that together are larger than a message may be."""
    base = client.head()
    for number in range(4):
        client.append([Event("Bulk", b"x" * 200, tags=["bulk"]) for _ in range(1000)])
    found, head = positions(client.read(tagged("bulk")))
    check(found == list(range(base + 1, base + 4001)) and head == base + 4000)
    client.append([Event("Large", b"x" * 40_000, tags=["large"]) for _ in range(50)])
    for _ in range(3):
        client.append([Event("Large", b"x" * 2_500_000, tags=["large"])])
    sizes = [len(event.event.data) for event in client.read(tagged("large"))]
    check(sizes == [40_000] * 50 + [2_500_000] * 3)


def tracking(client):
    check(client.get_tracking_info("upstream") is None)
    position = client.append([Event("A", b""), Event("B", b"")], tracking_info=TrackingInfo("upstream", 5))
    check(client.get_tracking_info("upstream") == 5)
    stored = list(client.read(start=position - 1))
    check([event.tracking_info for event in stored] == [TrackingInfo("upstream", 5)] * 2)
    text = "integrity error: condition failed: non-increasing tracking position for source 'upstream': 5 <= 5"
    again = TrackingInfo("upstream", 5)
    refused(umadb.IntegrityError, text, lambda: client.append([Event("C", b"")], tracking_info=again))
    check(client.append([], tracking_info=TrackingInfo("upstream", 6)) == 0)
    check(client.get_tracking_info("upstream") == 6)
    check(client.head() == position)


def subscriptions(client):
    head = client.head()
    live = client.subscribe(tagged("live"), after=head)
    writer = threading.Thread(
        target=lambda: [client.append([Event("L", b"", tags=["live"])]) for _ in range(20)]
    )
    writer.start()
    check([next(live).position for _ in range(20)] == list(range(head + 1, head + 21)))
    writer.join()
    whole = client.subscribe()
    check([next(whole).position for _ in range(head)] == list(range(1, head + 1)))
    check(list(client.subscribe(after=2**64 - 1)) == [])
    # A subscription that waits is cancelled from another thread.
    caught = []

    def wait():
        try:
            next(live)
        except umadb.CancelledByUserError as error:
            caught.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.2)
    live.cancel()
    waiting.join(10)
    check(len(caught) == 1)
    whole.cancel()


def cancellation(client):
    # A client that nobody holds cancels its streams itself.
    small, other = connect(batch_size=10), connect()
    response = small.read()
    check(next(response).position == 1)
    response.cancel()
    # What came with the first event is still there; what would have to be fetched is not.
    check(len(response.next_batch()) == 9)
    refused(umadb.CancelledByUserError, "", response.next_batch)
    # The server goes on, for this client and for others.
    check(client.append([Event("After", b"")]) == client.head())
    first, second = small.read(), other.subscribe()
    check(next(first).position == 1 and next(second).position == 1)
    umadb.cancel_all_stream_responses()
    for cancelled in [first, second]:
        cancelled.next_batch()
        refused(umadb.CancelledByUserError, "", cancelled.next_batch)
    check(client.append([Event("After", b"")]) == client.head())


def races():
    """Of fifty that claim one name exactly one gets it."""
    results = []

    def claim():
        name = AppendCondition(tagged("name:ada", types=["Claimed"]))
        try:
            results.append(connect().append([Event("Claimed", b"", tags=["name:ada"])], condition=name))
        except umadb.IntegrityError:
            results.append(None)

    threads = [threading.Thread(target=claim) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(len(results) == 50 and sum(result is not None for result in results) == 1, results)


def health(client):
    for service in ["", "umadb.v1.DCB"]:
        check(client.check_health(service) == umadb.ServingStatus.SERVING)
        watch = client.watch_health(service)
        check(next(watch) == umadb.ServingStatus.SERVING)
        watch.cancel()
    refused(Exception, "not found", lambda: client.check_health("other"))


def keys():
    for token in [None, WRONG_TOKEN, "key"]:
        stranger = connect(token)
        error = umadb.AuthenticationError
        refused(error, "authentication error", stranger.head)
        refused(error, "authentication error", lambda: stranger.append([Event("A", b"")]))
        refused(error, "authentication error", lambda: list(stranger.read()))
        refused(error, "authentication error", lambda: next(stranger.subscribe()))
        refused(error, "authentication error", lambda: stranger.get_tracking_info("s"))
        check(stranger.check_health() == umadb.ServingStatus.SERVING)


with connect() as client:
    appends(client)
    conditions(client)
    reads(client)
    many(client)
    tracking(client)
    subscriptions(client)
    cancellation(client)
    health(client)
    ids(client)
races()
if TOKEN:
    keys()
done()
