"""The adapters: exactly what is marked when programs mark in their own way.

The environment names the programs and the adapters; see CMakeLists.txt. A program that could not be
built, because its model is not installed here, is not named: its test is skipped.
"""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from sphase_py_test import Reader, written

HOST = os.environ["SPHASE_HOOKS_HOST"]
LIBRARY = os.environ["SPHASE_TEST_LIBRARY"]
SANITIZED = os.environ.get("SPHASE_TEST_SANITIZED", "") not in ("", "0")
KOKKOS, NVTX, ITT, PRELOAD = (
    os.environ["SPHASE_HOOK_" + name] for name in ("KOKKOS", "NVTX", "ITT", "PRELOAD")
)
LOAD = ["kokkos=" + KOKKOS, "nvtx=" + NVTX, "itt=" + ITT]


def run(command, **environment):
    """Returns the output; the program must succeed and not complain."""
    keep = {k: v for k, v in os.environ.items() if not k.startswith("SPHASE_")}
    done = subprocess.run(command, env={**keep, **environment}, capture_output=True, text=True,
                          timeout=100, check=False)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout


def recorded(command, **environment):
    with Reader() as reader:
        out = run(command, SPHASE_SOCKET=reader.path, **environment)
        return out, reader.markers()


def marks(*words):
    """What the host marks with these words."""
    return written(recorded([HOST, *words])[1])


def numbers(out):
    """What the calls returned, without the first line, which loading an adapter prints."""
    return " ".join(out.splitlines()[1:])


class Kokkos(unittest.TestCase):
    def kokkos(self, *words):
        return marks("kokkos=" + KOKKOS, *words)

    def test_no_fences_are_asked_for(self):
        self.assertEqual(run([HOST, "kokkos=" + KOKKOS]), "fencing 0\n")

    def test_regions_nest(self):
        self.assertEqual(self.kokkos("k.push=solve", "k.push=it/er", "k.pop", "k.pop"),
                         "+solve@0 +it_er@1 -it_er@1 -solve@0")

    def test_a_pop_too_many_marks_nothing(self):
        self.assertEqual(self.kokkos("k.pop", "k.push=a", "k.pop", "k.pop", "k.push=b", "k.pop"),
                         "+a@0 -a@0 +b@0 -b@0")

    def test_without_a_name_a_region_is_only_counted(self):
        self.assertEqual(
            self.kokkos("k.push=a", "k.push=-", "k.push=", "k.push=b", "k.pop", "k.pop", "k.pop",
                        "k.pop", "k.event=-", "k.create=-", "k.start", "k.stop"),
            "+a@0 +b@1 -b@1 -a@0")

    def test_sections_may_start_again_and_overlap_regions(self):
        self.assertEqual(
            self.kokkos("k.create=io", "k.start", "k.push=a", "k.event=now", "k.stop", "k.pop",
                        "k.start", "k.stop", "k.destroy", "k.start", "k.stop", "k.bad"),
            "+io@0 +a@1 :event=now@2 -io@0 +io@0 -io@0")

    def test_sections_that_come_and_go_use_up_nothing(self):
        words = ["k.create=io", "k.start", "k.stop", "k.destroy"] * 300
        self.assertEqual(self.kokkos(*words), " ".join(["+io@0 -io@0"] * 300))

    def test_regions_too_deep_are_counted(self):
        deep = ["k.push=r%d" % i for i in range(60)]
        got = self.kokkos(*deep, *["k.pop"] * 60, "k.push=after", "k.pop").split()
        self.assertEqual(got[:32], ["+r%d@%d" % (i, i) for i in range(32)])
        self.assertEqual(got[32], "+r32@32")  # by which the reader knows
        self.assertEqual(got[33:], ["-r%d@%d" % (i, i) for i in reversed(range(32))]
                         + ["+after@0", "-after@0"])

    def test_a_long_name_is_cut_and_ends(self):
        self.assertEqual(self.kokkos("k.push=" + "n" * 200, "k.pop"),
                         "+%s@0 -%s@0" % ("n" * 80, "n" * 80))

    def test_each_thread_has_its_own(self):
        self.assertEqual(
            self.kokkos("k.push=a", "thread", "k.pop", "k.push=b", "k.pop"), "+a@0 +b@0 -b@0")

    def test_a_forked_child_starts_over(self):
        out, got = recorded([HOST, "kokkos=" + KOKKOS, "k.push=a", "fork", "k.push=b", "k.pop",
                             "k.pop"])
        self.assertEqual(written(got), "+a@0 +b@0 -b@0")
        self.assertEqual([m["client"] for m in got], [1, 2, 2])

    def test_without_sphase_nothing_happens(self):
        run([HOST, "kokkos=" + KOKKOS, "k.push=a", "k.pop", "k.create=b", "k.start", "k.stop"])

    @unittest.skipUnless("SPHASE_HOOKS_KOKKOS_PROGRAM" in os.environ,
                         "no Kokkos here (Debian: libtrilinos-kokkos-dev)")
    def test_a_real_kokkos_program_where_kokkos_is_installed(self):
        # This Kokkos (3.4) knows the older variable only.
        out, got = recorded([os.environ["SPHASE_HOOKS_KOKKOS_PROGRAM"]],
                            KOKKOS_PROFILE_LIBRARY=KOKKOS, KOKKOS_TOOLS_LIBS=KOKKOS)
        self.assertEqual(out, "loaded 1\n")
        self.assertEqual(
            written(got),
            "+solve@0 +iterate@1 :event=converged@2 -iterate@1 +iterate@1 :event=converged@2"
            " -iterate@1 +write@1 -write@1 +write@1 -write@1 -solve@0")


class Nvtx(unittest.TestCase):
    def nvtx(self, *words):
        out, got = recorded([HOST, "nvtx=" + NVTX, *words])
        self.assertEqual(out.splitlines()[0], "init 0 1")
        return numbers(out), written(got)

    def test_pushes_nest_and_return_their_level(self):
        self.assertEqual(
            self.nvtx("n.push=a", "n.pushw=b~", "n.pushex=c", "n.pop", "n.pop", "n.pop", "n.pop"),
            ("0 1 2 2 1 0 -1", "+a@0 +b\u20ac@1 +c@2 -c@2 -b\u20ac@1 -a@0"))

    def test_domains_nest_each_on_their_own(self):
        self.assertEqual(
            self.nvtx("n.domain=x", "d.push=a", "n.push=b", "d.pop", "n.pop", "d.pop", "n.push=c"),
            ("0 0 0 0 -1 0", "+a@0 +b@1 -a@0 +c@0"))

    def test_registered_strings_have_their_names(self):
        self.assertEqual(self.nvtx("n.domain=x", "d.pushreg=a", "d.pushwide=w", "d.pop", "d.pop"),
                         ("0 1 1 0", "+a@0 +w@1 -w@1 -a@0"))

    def test_what_names_nothing_is_only_counted(self):
        self.assertEqual(
            self.nvtx("n.domain=x", "d.null", "d.pushbad", "d.pushsmall", "n.push=-", "n.mark=-",
                      "d.pop", "d.pop", "d.pop", "d.pop", "n.pop"),
            ("0 1 2 0 2 1 0 -1 0", ""))

    def test_ranges_end_by_their_number_in_any_thread(self):
        self.assertEqual(self.nvtx("n.start=a", "n.mark=m", "thread", "n.end", "n.endbad"),
                         ("", "+a@0 :event=m@1 -a@0"))

    def test_a_range_that_ends_around_a_push_ends_it(self):
        self.assertEqual(self.nvtx("n.start=a", "n.push=b", "n.end", "n.pop", "n.push=c", "n.pop"),
                         ("0 0 0 0", "+a@0 +b@1 -a@0 +c@0 -c@0"))

    def test_threads_and_forks(self):
        self.assertEqual(self.nvtx("n.push=a", "fork", "n.push=b", "thread", "n.push=c", "n.pop"),
                         ("0 1 0 0", "+a@0 +b@0 +c@0 -c@0"))

    def test_without_sphase_the_levels_are_right(self):
        out = run([HOST, "nvtx=" + NVTX, "n.push=a", "n.push=b", "n.pop", "n.pop", "n.pop"])
        self.assertEqual(numbers(out), "0 1 1 0 -1")


class Itt(unittest.TestCase):
    def itt(self, *words):
        return marks("itt=" + ITT, "i.domain=d", *words)

    def test_the_part_keeps_what_is_not_ours(self):
        self.assertEqual(run([HOST, "itt=" + ITT]), "own 1 sync 0\n")

    def test_tasks_frames_and_markers(self):
        self.assertEqual(
            self.itt("i.frame", "i.begin=a", "i.begin=b", "i.mark=m", "i.end", "i.end",
                     "i.frameend"),
            "+d@0 +a@1 +b@2 :event=m@3 -b@2 -a@1 -d@0")

    def test_what_names_nothing_is_only_counted(self):
        self.assertEqual(
            self.itt("i.end", "i.begin=a", "i.fn", "i.nohandle", "i.begin=-", "i.nodomain",
                     "i.end", "i.end", "i.end", "i.end", "i.end"), "+a@0 -a@0")

    def test_a_disabled_domain_marks_nothing(self):
        self.assertEqual(self.itt("i.off", "i.begin=a", "i.end", "i.frame", "i.frameend",
                                  "i.mark=m", "i.on", "i.begin=b", "i.end"), "+b@0 -b@0")

    def test_several_static_parts(self):
        self.assertEqual(
            self.itt("i.begin=a", "itt=" + ITT, "i.domain=e", "i.begin=b", "i.end"),
            "+a@0 +b@1 -b@1")

    def test_a_part_from_before_2011_is_left_alone(self):
        self.assertEqual(marks("olditt=" + ITT, "i.domain=d", "i.begin=a", "i.end"), "")

    def test_threads_and_forks(self):
        self.assertEqual(self.itt("i.begin=a", "fork", "i.begin=b", "thread", "i.begin=c", "i.end"),
                         "+a@0 +b@0 +c@0 -c@0")


class Together(unittest.TestCase):
    """All of a process is one client, so that its phases nest."""

    WORDS = ["s.begin=s", "k.push=k", "n.push=n", "i.begin=i", "s.begin=in", "s.end=in", "i.end",
             "n.pop", "k.pop", "s.end=s"]
    NESTED = "+s@0 +k@1 +n@2 +i@3 +in@4 -in@4 -i@3 -n@2 -k@1 -s@0"

    def check(self, *words, **environment):
        _, got = recorded([HOST, *words], **environment)
        self.assertEqual({m["client"] for m in got}, {1})
        return written(got)

    def test_adapters_among_themselves(self):
        self.assertEqual(
            self.check(*LOAD, "i.domain=d", *[w for w in self.WORDS if not w.startswith("s.")]),
            "+k@0 +n@1 +i@2 -i@2 -n@1 -k@0")

    def test_with_a_program_that_is_linked_with_the_library(self):
        self.assertEqual(self.check("global=" + LIBRARY, *LOAD, "i.domain=d", *self.WORDS),
                         self.NESTED)

    def test_with_a_library_that_is_loaded_for_itself_only(self):
        self.assertEqual(self.check(*LOAD, "library=" + LIBRARY, "i.domain=d", *self.WORDS),
                         self.NESTED)

    def test_with_a_library_that_is_loaded_after_the_first_mark(self):
        words = ["k.push=k", "library=" + LIBRARY, "s.begin=s", "s.end=s", "k.pop"]
        self.assertEqual(self.check(*LOAD, *words, LD_LIBRARY_PATH=os.path.dirname(LIBRARY)),
                         "+k@0 +s@1 -s@1 -k@0")

    def test_an_end_from_outside_ends_what_was_pushed(self):
        self.assertEqual(
            self.check("global=" + LIBRARY, *LOAD, "s.begin=s", "k.push=k", "s.end=s", "k.push=l",
                       "k.pop", "k.pop"), "+s@0 +k@1 -s@0 +l@0 -l@0")


@unittest.skipIf(SANITIZED, "a sanitizer's runtime must come before what is preloaded")
class PreloadButNotBeforeASanitizer(unittest.TestCase):
    CALLS = (
        "cali_begin_phase p\ncali_begin_region r\ncali_begin_comm_region c\n"
        "cali_end_comm_region c\ncali_end_region r\ncali_end_phase p\n"
        "likwid_markerStartRegion l\n= -11\nPAPI_hl_region_begin h\n= -13\n"
        "PAPI_hl_region_end h\n= -14\nlikwid_markerStopRegion l\n= -12\n"
        "MPI_Pcontrol 100 kept\n= 17\nMPI_Pcontrol -100 kept\n= 17\n"
        "MPI_Pcontrol 7 \nMPI_Pcontrol -7 \n")
    MARKS = ("+p@0 +r@1 +c@2 -c@2 -r@1 -p@0 +l@0 +h@1 -h@1 -l@0 +pcontrol-100@0 -pcontrol-100@0"
             " +pcontrol-7@0 -pcontrol-7@0")

    def test_calls_are_marked_and_reach_the_real_function(self):
        out, got = recorded([os.environ["SPHASE_HOOKS_REGIONS"]], LD_PRELOAD=PRELOAD)
        self.assertEqual(out, self.CALLS)
        self.assertEqual(written(got), self.MARKS)

    def test_without_the_adapter_or_sphase_it_is_the_same_program(self):
        self.assertEqual(run([os.environ["SPHASE_HOOKS_REGIONS"]]), self.CALLS)
        self.assertEqual(run([os.environ["SPHASE_HOOKS_REGIONS"]], LD_PRELOAD=PRELOAD), self.CALLS)

    def test_real_functions_in_libraries_that_are_loaded_for_themselves(self):
        out, got = recorded([os.environ["SPHASE_HOOKS_LOADER"], os.environ["SPHASE_HOOKS_PLUGIN"]],
                            LD_PRELOAD=PRELOAD)
        self.assertEqual(out, self.CALLS)
        self.assertEqual(written(got), self.MARKS)

    def test_ordinary_programs_run(self):
        self.assertEqual(run(["/bin/sh", "-c", "echo yes"], LD_PRELOAD=PRELOAD), "yes\n")

    def mpi(self, name, expected, **environment):
        program = os.environ.get("SPHASE_HOOKS_" + name)
        if program is None:
            self.skipTest("no MPI compiler for " + name.lower().replace("_", " "))
        # A single process started by itself: no mpirun is needed.
        quiet = {"OMPI_MCA_btl": "self", "OMPI_MCA_plm_rsh_agent": "", "HWLOC_COMPONENTS": "-gl"}
        _, got = recorded([program], LD_PRELOAD=PRELOAD, **quiet, **environment)
        self.assertEqual(written(got), expected)

    NUMBERS = "+pcontrol-5@0 +pcontrol-6@1 -pcontrol-6@1 -pcontrol-5@0"
    NAMES = "+setup@0 +pcontrol-5@1 +pcontrol-6@2 -pcontrol-6@2 -pcontrol-5@1 -setup@0"

    def test_open_mpi_where_its_compiler_is_installed(self):
        self.mpi("OPENMPI", self.NUMBERS)

    def test_open_mpi_with_names_where_its_compiler_is_installed(self):
        self.mpi("OPENMPI", self.NAMES, SPHASE_PCONTROL_NAMES="1")

    def test_open_mpi_fortran_where_its_compiler_is_installed(self):
        self.mpi("OPENMPI_FORTRAN", "+pcontrol-8@0 -pcontrol-8@0")

    def test_mpich_where_its_compiler_is_installed(self):
        self.mpi("MPICH", self.NUMBERS)

    def test_mpich_with_names_where_its_compiler_is_installed(self):
        self.mpi("MPICH", self.NAMES, SPHASE_PCONTROL_NAMES="1")

    def test_mpich_fortran_where_its_compiler_is_installed(self):
        self.mpi("MPICH_FORTRAN", "+pcontrol-8@0 -pcontrol-8@0")


if __name__ == "__main__":
    unittest.main()
