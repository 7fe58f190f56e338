"""What libsphase.so.1 shows to the world and asks of it, in $SPHASE_TEST_LIBRARY."""

import os
import re
import subprocess
import unittest

LIBRARY = os.environ["SPHASE_TEST_LIBRARY"]
SANITIZED = os.environ.get("SPHASE_TEST_SANITIZED", "") not in ("", "0")
EXPORTS = {"sphase_active", "sphase_attr", "sphase_begin", "sphase_end", "sphase_value"}


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()


@unittest.skipIf(SANITIZED, "a sanitizer adds symbols of its own")
class AbiButNotUnderASanitizerWhichAddsSymbols(unittest.TestCase):
    def test_it_exports_the_functions_of_the_header_and_nothing_else(self):
        lines = output("nm", "-D", "--defined-only", LIBRARY).splitlines()
        names = {line.split()[-1].split("@")[0] for line in lines}
        self.assertEqual(names - {"SPHASE_1"}, EXPORTS)

    def test_it_needs_libc_only(self):
        needed = re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", LIBRARY))
        self.assertLessEqual(set(needed), {"libc.so.6", "ld-linux-x86-64.so.2"})

    def test_it_has_its_soname_and_is_never_unmapped(self):
        dynamic = output("readelf", "-d", LIBRARY)
        self.assertIn("[libsphase.so.1]", dynamic)
        self.assertIn("NODELETE", dynamic)

    def test_it_loads_on_glibc_2_17(self):
        versions = re.findall(r"GLIBC_([0-9.]+)", output("readelf", "-V", LIBRARY))
        newest = max(tuple(int(part) for part in version.split(".")) for version in versions)
        self.assertLessEqual(newest, (2, 17))

    def test_it_has_no_constructor_thread_or_fork_handler(self):
        symbols = output("nm", "-D", "--undefined-only", LIBRARY)
        for word in ("pthread_create", "pthread_atfork", "__register_atfork", "sigaction", "signal"):
            self.assertNotRegex(symbols, r"\b%s\b" % word)
        # The one entry of .init_array is the compiler's frame_dummy.
        sizes = re.findall(r"INIT_ARRAYSZ\)\s+(\d+)", output("readelf", "-d", LIBRARY))
        self.assertIn(sizes, ([], ["8"]))


if __name__ == "__main__":
    unittest.main()
