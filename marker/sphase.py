# SPDX-License-Identifier: MIT
"""Mark the phases of a Python program, so that sphase can tell what each of them used.

    import sphase

    with sphase.phase("solve", cells="1e6"):
        for _ in range(100):
            with sphase.phase("iterate"):
                ...
                sphase.value("residual", residual)

    @sphase.phase("assemble")
    def assemble(mesh):
        ...

One file, Python 3.6 or later, nothing to build. It calls libsphase.so.1, which it looks for in
$SPHASE_LIB, then beside this file, then where the system keeps libraries. Without the library, or in
a job that runs without sphase, every call does nothing; `active()` tells which, `why()` the reason.
No call raises an exception or prints, and an exception inside a phase ends it and goes on.

Each thread has phases of its own. In a child of os.fork() no phase is open. Tasks of an event loop
share a thread: where phases of several such tasks overlap in time, an end also closes the phases
begun after it, so mark in one task at a time.
"""

import ctypes
import functools
import inspect
import os
import threading

__all__ = ["phase", "begin", "end", "value", "attr", "active", "why"]

_LIBRARY = "libsphase.so.1"


class _Nothing:
    """Stands for the library where there is none. Counts depth as the library does."""

    def __init__(self):
        self._thread = threading.local()

    def sphase_begin(self, _name):
        depth = getattr(self._thread, "depth", 0)
        self._thread.depth = depth + 1
        return depth

    def sphase_end(self, _name):
        self._thread.depth = max(0, getattr(self._thread, "depth", 0) - 1)
        return self._thread.depth

    def sphase_value(self, _name, _value):
        pass

    def sphase_attr(self, _key, _value):
        pass

    def sphase_active(self):
        return 0


def _candidates():
    if os.environ.get("SPHASE_LIB"):
        yield os.environ["SPHASE_LIB"]
    here = os.path.dirname(os.path.abspath(__file__))
    for name in (_LIBRARY, "libsphase.so"):
        path = os.path.join(here, name)
        if os.path.exists(path):
            yield path
    yield _LIBRARY


def _open(path):
    # PyDLL keeps the interpreter lock: a marker is shorter than giving it up and getting it back.
    library = ctypes.PyDLL(path)
    for function, result, arguments in (
        ("sphase_begin", ctypes.c_int, [ctypes.c_char_p]),
        ("sphase_end", ctypes.c_int, [ctypes.c_char_p]),
        ("sphase_value", None, [ctypes.c_char_p, ctypes.c_double]),
        ("sphase_attr", None, [ctypes.c_char_p, ctypes.c_char_p]),
        ("sphase_active", ctypes.c_int, []),
    ):
        getattr(library, function).restype = result
        getattr(library, function).argtypes = arguments
    return library


def _load():
    """Returns the library and None, or a stand-in and the reason."""
    reasons = []
    for path in _candidates():
        try:
            return _open(path), None
        except Exception as error:  # pylint: disable=broad-except
            reasons.append(str(error) or path)
    return _Nothing(), "no usable library: " + "; ".join(reasons)


_lib, _why_not = _load()


@functools.lru_cache(maxsize=1024)
def _encode(text):
    return text.replace("\0", "?").encode("utf-8", "replace")


def _bytes(thing):
    """Any object as the library wants it; None stays None."""
    if thing is None:
        return None
    try:
        if isinstance(thing, bytes):
            thing = thing.decode("utf-8", "replace")
        return _encode(thing if type(thing) is str else str(thing))
    except Exception:  # pylint: disable=broad-except
        return b"?"


def begin(name):
    """Opens a phase. Returns how many were open in this thread before."""
    return _lib.sphase_begin(_bytes(name))


def end(name=None):
    """Closes the phase `name` and those inside it; without a name the innermost.
    Returns how many are still open in this thread."""
    return _lib.sphase_end(_bytes(name))


def value(name, number):
    """Records a number at this moment in the innermost phase. What is no number is left out."""
    try:
        number = float(number)
    except Exception:  # pylint: disable=broad-except
        return
    _lib.sphase_value(_bytes(name), number)


def attr(key, text):
    """Records a property of the innermost phase; the last one of a key wins."""
    _lib.sphase_attr(_bytes(key), _bytes(text))


def active():
    """Whether the markers of this process are recorded."""
    return bool(_lib.sphase_active())


def why():
    """None if active, else one sentence that says why not."""
    if active():
        return None
    if _why_not is not None:
        return _why_not
    path = os.environ.get("SPHASE_SOCKET")
    if not path:
        return "SPHASE_SOCKET is not set: this job runs without sphase"
    return "the recorder at %s did not take this process in" % path


class phase:  # pylint: disable=invalid-name
    """A phase as a context manager, or as a decorator.

    Attributes are given by keyword: phase("solve", cells="1e6"). As a decorator it marks each call
    of a function; of a coroutine function, the time from its start to its end, waiting included; of
    a generator function, the time from its first item until it is exhausted or closed, including
    what its consumer does in between. Asynchronous generators are left as they are.
    """

    def __init__(self, *name, **attributes):  # so that an attribute may be called "name"
        self._name = name[0] if name else None
        self._attributes = attributes

    def __enter__(self):
        begin(self._name)
        for key, text in self._attributes.items():
            attr(key, text)
        return self

    def __exit__(self, *_error):
        end(self._name)
        return False

    def __call__(self, function):
        if inspect.isasyncgenfunction(function):
            return function
        if inspect.iscoroutinefunction(function):
            return self._around_coroutine(function)
        if inspect.isgeneratorfunction(function):
            return self._around_generator(function)

        @functools.wraps(function)
        def marked(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return marked

    def _around_coroutine(self, function):
        @functools.wraps(function)
        async def marked(*args, **kwargs):
            with self:
                return await function(*args, **kwargs)

        return marked

    def _around_generator(self, function):
        @functools.wraps(function)
        def marked(*args, **kwargs):
            with self:
                return (yield from function(*args, **kwargs))

        return marked
