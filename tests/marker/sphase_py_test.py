"""The Python module: with the library and a recorder, with the library alone, without it.

The environment names what to test with: SPHASE_TEST_LIBRARY, SPHASE_TEST_READER,
SPHASE_TEST_MODULE. SPHASE_TEST_SANITIZED: the library cannot be loaded into this interpreter.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

MODULE = os.environ["SPHASE_TEST_MODULE"]
LIBRARY = os.environ["SPHASE_TEST_LIBRARY"]
SANITIZED = os.environ.get("SPHASE_TEST_SANITIZED", "") not in ("", "0")


def run(code, **environment):
    """Runs code with sphase.py importable. Returns its stdout; it must succeed and not complain."""
    keep = {k: v for k, v in os.environ.items() if not k.startswith("SPHASE_")}
    done = subprocess.run(
        [sys.executable, "-c", "import sphase\n" + code],
        env=dict(keep, **{"PYTHONPATH": os.path.dirname(MODULE), **environment}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout.decode()


class Reader:
    def __enter__(self):
        self._process = subprocess.Popen(
            [os.environ["SPHASE_TEST_READER"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.path = self._process.stdout.readline().decode().strip()
        return self

    def markers(self):
        out, _ = self._process.communicate(timeout=30)
        return [json.loads(line) for line in out.decode().splitlines()]

    def __exit__(self, *_error):
        if self._process.poll() is None:
            self._process.communicate(timeout=30)


def written(markers):
    return " ".join("%s%s@%d" % (m["type"], m["text"], m["depth"]) for m in markers)


def recorded(code):
    with Reader() as reader:
        run(code, SPHASE_LIB=LIBRARY, SPHASE_SOCKET=reader.path)
        return reader.markers()


class WithoutLibrary(unittest.TestCase):
    def test_every_call_does_nothing_and_says_why(self):
        out = run(
            "print(sphase.begin('a'), sphase.begin('b'), sphase.end('b'), sphase.end(), sphase.end())\n"
            "sphase.value('x', 1); sphase.attr('k', 'v')\n"
            "with sphase.phase('solve', cells='1e6'): pass\n"
            "print(sphase.active())\n"
            "print(sphase.why())",
            SPHASE_LIB="/nonexistent/libsphase.so",
            SPHASE_SOCKET="/nonexistent/socket",
        ).splitlines()
        self.assertEqual(out[0], "0 1 1 0 0")
        self.assertEqual(out[1], "False")
        self.assertIn("no usable library: /nonexistent/libsphase.so", out[2])

    def test_an_exception_in_a_phase_goes_on(self):
        code = "try:\n with sphase.phase('a'): 1/0\nexcept ZeroDivisionError: print(sphase.begin('b'))"
        self.assertEqual(run(code, SPHASE_LIB="/nonexistent"), "0\n")

    def test_a_file_that_is_no_library_is_no_library(self):
        self.assertIn("no usable library", run("print(sphase.why())", SPHASE_LIB=MODULE))


@unittest.skipIf(SANITIZED, "a sanitized library cannot be loaded into this interpreter")
class WithLibraryButNotASanitizedOne(unittest.TestCase):
    def test_outside_of_sphase_it_is_inactive_and_says_why(self):
        code = "print(sphase.begin('a'), sphase.end('a'), sphase.active()); print(sphase.why())"
        out = run(code, SPHASE_LIB=LIBRARY).splitlines()
        self.assertEqual(out[0], "0 0 False")
        self.assertIn("SPHASE_SOCKET is not set", out[1])

    def test_a_recorder_that_is_not_there_is_named(self):
        out = run("print(sphase.why())", SPHASE_LIB=LIBRARY, SPHASE_SOCKET="/nonexistent/socket")
        self.assertIn("/nonexistent/socket", out)

    def test_a_library_beside_the_module_is_found(self):
        with tempfile.TemporaryDirectory() as folder, Reader() as reader:
            shutil.copy(MODULE, folder)
            shutil.copy(LIBRARY, os.path.join(folder, "libsphase.so.1"))
            run("sphase.begin('a')", PYTHONPATH=folder, SPHASE_SOCKET=reader.path)
            self.assertEqual(written(reader.markers()), "+a@0")

    def test_phases_values_and_attributes_arrive(self):
        markers = recorded(
            "assert sphase.active() and sphase.why() is None\n"
            "with sphase.phase('solve', cells=1000000, name='n'):\n"
            "  with sphase.phase('iterate'):\n"
            "    sphase.value('residual', 0.5)\n"
            "  sphase.attr('mesh', 'fine')\n"
        )
        self.assertEqual(
            written(markers),
            "+solve@0 :cells=1000000@1 :name=n@1 +iterate@1 =residual@2 -iterate@1 :mesh=fine@1"
            " -solve@0",
        )
        self.assertEqual(markers[4]["value"], 0.5)

    def test_an_exception_ends_the_phase_and_goes_on(self):
        markers = recorded(
            "try:\n"
            " with sphase.phase('solve'): raise KeyError('x')\n"
            "except KeyError: sphase.begin('after')\n"
        )
        self.assertEqual(written(markers), "+solve@0 -solve@0 +after@0")

    def test_decorators_mark_functions_recursion_generators_and_coroutines(self):
        markers = recorded(
            "import asyncio\n"
            "@sphase.phase('f')\n"
            "def f(n): return n if n == 0 else f(n - 1)\n"
            "@sphase.phase('g')\n"
            "def g():\n"
            "  got = yield 1\n"
            "  return got\n"
            "@sphase.phase('c')\n"
            "async def c(): await asyncio.sleep(0); return 3\n"
            "@sphase.phase('a')\n"
            "async def a(): yield 1\n"
            "assert f(1) == 0 and f.__name__ == 'f'\n"
            "assert list(g()) == [1]\n"
            "loop = asyncio.new_event_loop()\n"
            "assert loop.run_until_complete(c()) == 3\n"
            "async def all(): return [x async for x in a()]\n"
            "assert loop.run_until_complete(all()) == [1]\n"
            "loop.close()\n"
        )
        self.assertEqual(written(markers), "+f@0 +f@1 -f@1 -f@0 +g@0 -g@0 +c@0 -c@0")

    def test_a_closed_generator_ends_its_phase(self):
        markers = recorded(
            "@sphase.phase('g')\n"
            "def g():\n"
            "  while True: yield 1\n"
            "i = g(); next(i); i.close(); sphase.begin('after')\n"
        )
        self.assertEqual(written(markers), "+g@0 -g@0 +after@0")

    def test_threads_and_forked_children_have_phases_of_their_own(self):
        markers = recorded(
            "import os, threading\n"
            "sphase.begin('main')\n"
            "t = threading.Thread(target=lambda: sphase.begin('thread')); t.start(); t.join()\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "  sphase.begin('child')\n"
            "  os._exit(0)\n"
            "os.waitpid(pid, 0)\n"
            "sphase.end()\n"
        )
        self.assertEqual(written(markers), "+main@0 +thread@0 +child@0 -@0")
        self.assertNotEqual(markers[0]["tid"], markers[1]["tid"])
        self.assertEqual([m["client"] for m in markers], [1, 1, 2, 1])

    def test_nothing_that_is_passed_raises(self):
        markers = recorded(
            "class Bad:\n"
            "  def __str__(self): raise ValueError\n"
            "for name in (None, '', 1, b'bytes', '\\udc80', 'a\\0b', '\\u20ac' * 50, Bad(), [1]):\n"
            "  with sphase.phase(name, k=Bad()): pass\n"
            "  sphase.value(name, 1)\n"
            "for number in (None, 'x', Bad(), 10**400): sphase.value('n', number)\n"
            "with sphase.phase(): pass\n"
            "assert sphase.begin('a') == 0\n"
        )
        names = [m["text"] for m in markers if m["type"] == "+"]
        self.assertEqual(names, ["1", "bytes", "?", "a?b", "\u20ac" * 26, "?", "[1]", "a"])


if __name__ == "__main__":
    unittest.main()
