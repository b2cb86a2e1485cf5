"""The published library eventsourcing with its adapter eventsourcing_umadb, both unmodified, against
this server: the library's own tests of what records events, and an application.

Usage: eventsourcing_client.py URL PART. Prints "ok" and the number of checks, or fails. The namespace
must be empty.
"""

import contextlib
import io
import sys
import unittest

from checks import check, done, equal
from eventsourcing.domain import triggers
from eventsourcing.pydantic import DcbApplication, Decision, EnduringObject
from eventsourcing.persistence import IntegrityError
from eventsourcing.tests.persistence import AggregateRecorderTestCase, ApplicationRecorderTestCase
from eventsourcing_umadb.recorders import UmaDbAggregateRecorder, UmaDbApplicationRecorder
from umadb import Client

URL, PART = sys.argv[1:]


class Aggregates(AggregateRecorderTestCase):
    # As UmaDB: an append that was made before is answered as it was then.
    recorder_supports_idempotent_appends = True

    def create_recorder(self):
        return UmaDbAggregateRecorder(umadb=Client(URL))


class Applications(ApplicationRecorderTestCase):
    recorder_supports_idempotent_appends = True

    def create_recorder(self):
        return UmaDbApplicationRecorder(umadb=Client(URL))


class Course(EnduringObject):
    class Defined(Decision):
        course_id: str
        seats: int

    class Booked(Decision):
        course_id: str
        student: str

    @triggers(Defined)
    def __init__(self, *, seats: int) -> None:
        self.seats = seats
        self.students: list[str] = []

    @triggers(Booked)
    def book(self, student: str) -> None:
        self.students.append(student)


def run(case, name):
    """Runs a test of the library's own."""
    result = unittest.TestResult()
    with contextlib.redirect_stdout(io.StringIO()):
        case(name).run(result)
    problems = result.errors + result.failures
    check(not problems, *(text for _, text in problems))
    check(result.testsRun == 1 and not result.skipped)


def decide():
    """An application: what it decides is read back, and a decision on an old read is refused."""
    app = DcbApplication(env={"PERSISTENCE_MODULE": "eventsourcing_umadb", "UMADB_URI": URL})
    course = Course(seats=2)
    app.repository.save(course)
    first, second = (app.repository.get(course.id, Course) for _ in range(2))
    first.book("ada")
    app.repository.save(first)
    second.book("grace")
    try:
        app.repository.save(second)
    except IntegrityError:
        pass
    else:
        check(False, "a decision on an old read was taken")
    again = app.repository.get(course.id, Course)
    again.book("grace")
    app.repository.save(again)
    found = app.repository.get(course.id, Course)
    equal((found.seats, found.students), (2, ["ada", "grace"]))


match PART:
    case "aggregates":
        run(Aggregates, "test_insert_and_select")
    case "applications":
        run(Applications, "test_insert_select")
    case "concurrently":
        run(Applications, "test_concurrent_no_conflicts")
    case "decisions":
        decide()
done()
