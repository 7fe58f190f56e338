"""What a program marks for other models becomes phases: from the variables that slurmstepd sets to
the rows in node.db."""

import unittest

from telemetry import ON, TelemetryCase

# Loads the adapters as their models would, by the variables, and marks.
MARK = ('exec "$0" nvtx="$NVTX_INJECTION64_PATH" kokkos="$KOKKOS_TOOLS_LIBS" k.push=solve'
        ' n.push=iterate n.mark=now n.pop k.pop')


class Hooks(TelemetryCase):
    lab_name = "hooks"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = cls.lab.build / "marker" / "hooks"
        cls.lab.set_plugstack(f"{cls.lab.plugstack_text().rstrip()} hooks_dir={folder}"
                              " hooks=kokkos,nvtx,itt\n")
        cls.programs = cls.lab.build / "tests" / "marker" / "hooks"

    def paths(self, job):
        self.assertEqual(job.rc, 0, job.stderr)
        [run] = self.runs(job.id, 1)
        return [phase["path"] for phase in run.phases]

    def test_what_kokkos_and_nvtx_mark_nests(self):
        job = self.srun(["sh", "-c", MARK, self.programs / "hooks_host"], ON)
        self.assertEqual(self.paths(job), ["solve", "solve/iterate"])

    def test_what_is_preloaded_on_request(self):
        program = [self.programs / "hooks_regions"]
        job = self.srun(program, f"{ON}=hooks=preload")
        self.assertEqual(self.paths(job), ["p", "p/r", "p/r/c", "l", "l/h", "pcontrol-100",
                                           "pcontrol-7"])
        self.assertEqual(self.paths(self.srun(program, ON)), [])

    def test_a_batch_script_gets_no_kokkos_but_its_steps_do(self):
        show = 'echo "$KOKKOS_TOOLS_LIBS|$KOKKOS_PROFILE_LIBRARY|$NVTX_INJECTION64_PATH"'
        job = self.batch(f"{show}\nsrun sh -c '{show}'\nexport KOKKOS_PROFILE_LIBRARY=/mine.so\n"
                         f"srun sh -c '{show}'\nsrun {ON}=hooks=off sh -c '{show}'", ON)
        folder = self.lab.build / "marker" / "hooks"
        kokkos, nvtx = folder / "libsphase_kokkos.so", folder / "libsphase_nvtx.so"
        # srun says so where the step before has not quite ended.
        said = [line for line in job.stdout.splitlines() if not line.startswith("srun: ")]
        self.assertEqual(said, [f"||{nvtx}", f"{kokkos}||{nvtx}", f"|/mine.so|{nvtx}",
                                "|/mine.so|"])


if __name__ == "__main__":
    unittest.main()
