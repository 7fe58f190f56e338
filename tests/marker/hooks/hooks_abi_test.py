"""What each adapter shows to the world and asks of it."""

import os
import re
import subprocess
import unittest

HOOKS = ("kokkos", "nvtx", "itt", "preload")
FILES = {hook: os.environ["SPHASE_HOOK_" + hook.upper()] for hook in HOOKS}
SANITIZED = os.environ.get("SPHASE_TEST_SANITIZED", "") not in ("", "0")


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()


@unittest.skipIf(SANITIZED, "a sanitizer adds symbols of its own")
class AbiButNotUnderASanitizerWhichAddsSymbols(unittest.TestCase):
    def each(self):
        for hook, file in FILES.items():
            with self.subTest(hook):
                yield hook, file

    def test_it_exports_the_names_of_its_map_and_nothing_else(self):
        for hook, file in self.each():
            with open(os.path.join(os.environ["SPHASE_HOOK_MAPS"], hook + ".map")) as text:
                names = text.read().partition("global:")[2].partition("local:")[0]
            lines = output("nm", "-D", "--defined-only", file).splitlines()
            self.assertEqual(sorted(line.split()[-1] for line in lines),
                             sorted(re.findall(r"\w+", names)))

    def test_what_adapters_share_exists_once_per_process(self):
        for _, file in self.each():
            self.assertRegex(output("nm", "-D", file), r" u sphase_hook_markers_1\b")

    def test_it_needs_libc_only(self):
        for _, file in self.each():
            needed = re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", file))
            self.assertLessEqual(set(needed),
                                 {"libc.so.6", "libdl.so.2", "ld-linux-x86-64.so.2"})

    def test_it_loads_on_glibc_2_17(self):
        for _, file in self.each():
            versions = re.findall(r"GLIBC_([0-9.]+)", output("readelf", "-V", file))
            newest = max(tuple(int(part) for part in version.split(".")) for version in versions)
            self.assertLessEqual(newest, (2, 17))

    def test_it_takes_none_of_the_thread_memory_that_is_scarce(self):
        for _, file in self.each():
            dynamic = output("readelf", "-dW", file)
            self.assertNotIn("STATIC_TLS", dynamic)
            self.assertIn("NODELETE", dynamic)
            self.assertNotRegex(dynamic, "RPATH|RUNPATH|TEXTREL")

    def test_it_has_no_constructor_thread_or_fork_handler(self):
        for _, file in self.each():
            symbols = output("nm", "-D", "--undefined-only", file)
            for word in ("pthread_create", "pthread_atfork", "__register_atfork", "sigaction"):
                self.assertNotRegex(symbols, r"\b%s\b" % word)
            sizes = re.findall(r"INIT_ARRAYSZ\)\s+(\d+)", output("readelf", "-d", file))
            self.assertIn(sizes, ([], ["8"]))


if __name__ == "__main__":
    unittest.main()
