"""The examples in C++ and Fortran: what they mark, and that they do nothing without sphase."""

import os
import subprocess
import unittest

from sphase_py_test import Reader, written


def run(program, **env):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("SPHASE_SOCKET")}
    return subprocess.run([program], env={**clean, **env}, capture_output=True, text=True,
                          check=True, timeout=60)


def markers_of(program):
    with Reader() as reader:
        run(program, SPHASE_SOCKET=reader.path)
        return written(reader.markers())


class Languages(unittest.TestCase):
    def test_cpp_scopes_end_with_an_exception_too(self):
        self.assertEqual(markers_of(os.environ["SPHASE_TEST_CPP"]),
                         "+solve@0 :cells=1000000@1 +iterate@1 =residual@2 -iterate@1"
                         " +iterate@1 =residual@2 -iterate@1 +iterate@1 =residual@2 -iterate@1"
                         " -solve@0")

    def test_cpp_without_sphase(self):
        done = run(os.environ["SPHASE_TEST_CPP"])
        self.assertEqual(done.stdout + done.stderr, "")

    @unittest.skipUnless(os.environ["SPHASE_TEST_FORTRAN"], "no Fortran compiler was found")
    def test_fortran_where_a_compiler_is_installed(self):
        self.assertEqual(markers_of(os.environ["SPHASE_TEST_FORTRAN"]),
                         "+solve@0 :cells=1000000@1 +iterate@1 =residual@2 -iterate@1"
                         " +iterate@1 =residual@2 -iterate@1 -@0")

    @unittest.skipUnless(os.environ["SPHASE_TEST_FORTRAN"], "no Fortran compiler was found")
    def test_fortran_without_sphase_where_a_compiler_is_installed(self):
        self.assertEqual(run(os.environ["SPHASE_TEST_FORTRAN"]).stdout.strip(), "not recorded")


if __name__ == "__main__":
    unittest.main()
