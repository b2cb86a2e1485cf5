"""Checks of a script, and how many there were: whoever runs it wants to be told that they were made."""

n_checks = 0


def check(condition, *what):
    global n_checks
    n_checks += 1
    if not condition:
        raise AssertionError(what)


def equal(actual, expected):
    check(actual == expected, "is", actual, "should be", expected)


def refused(kind, text, call):
    """The call must fail with this kind of error and say this."""
    try:
        answer = call()
    except kind as error:
        check(text in str(error), str(error), text)
        return
    raise AssertionError(("not refused", kind, text, answer))


def done(*what):
    print("ok", n_checks, "checks", *what)
