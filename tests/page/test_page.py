"""The page of `sphase report --html` in a real browser."""

import os
import pathlib
import sqlite3
import subprocess
import tempfile
import unittest

import browser
import page_jobs

SPHASE = pathlib.Path(os.environ.get("SPHASE_BUILD", page_jobs.ROOT / "build/release")) / "cli/sphase"
SHOTS = os.environ.get("SPHASE_SHOTS")  # a folder for pictures


def setUpModule():
    why = browser.missing()
    if why:
        raise unittest.SkipTest(why)


class Pages(unittest.TestCase):
    """One database, one browser; a page for each job."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="sphase-page-")
        cls.db_path = os.path.join(cls.folder.name, "cluster.db")
        db = page_jobs.make_db(cls.db_path)
        page_jobs.one_node(db)
        page_jobs.resized(db)
        page_jobs.many_nodes(db)
        page_jobs.odd_jobs(db)
        db.commit()
        db.close()
        cls.browser = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def setUp(self):
        self.browser.log()  # what was said before is another test's

    def tearDown(self):
        self.assertEqual([], [entry["message"] for entry in self.browser.log()], "the browser complained")

    def open(self, job):
        page = os.path.join(self.folder.name, f"{job}.html")
        if not os.path.exists(page):
            subprocess.run([SPHASE, "report", str(job), "--db", self.db_path, "--html", page], check=True,
                           stdout=subprocess.DEVNULL)
        self.browser.open(page)
        return self.browser

    def shoot(self, name):
        if SHOTS:
            self.browser.screenshot(os.path.join(SHOTS, f"{name}.png"))

    def db(self, sql, *values):
        db = sqlite3.connect(self.db_path)
        try:
            return db.execute(sql, values).fetchall()
        finally:
            db.close()

    def window(self):
        return self.browser.value("[sphase.view.from / 1e6, sphase.view.to / 1e6]")

    def assert_window(self, begin_s, end_s, delta_s):
        begin, end = self.window()
        self.assertAlmostEqual(begin, begin_s, delta=delta_s)
        self.assertAlmostEqual(end, end_s, delta=delta_s)

    def x_of(self, time_s, plot="#lanes"):
        """Where a time is in the window, when the whole job is shown."""
        box = self.browser.box(plot)
        length = self.browser.value("sphase.view.start.length / 1e6")
        width = self.browser.value("document.getElementById('lanes-scroll').clientWidth")
        return box["x"] + 132 + time_s / length * (width - 132 - 14)

    def middle_of(self, plot):
        box = self.browser.box(plot)
        return box["y"] + box["height"] / 2

    def scroll_to(self, selector):
        self.browser.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        self.browser.settle()

    def hover(self, time_s, plot):
        """The lines of the tooltip there."""
        self.scroll_to(plot)
        self.browser.mouse((self.x_of(time_s), self.middle_of(plot)))
        return self.browser.value("[...document.getElementById('tip').children].map(line => line.textContent)")

    def row(self, name):
        """The number of a row of the phase table."""
        names = self.browser.value(
            "[...document.querySelectorAll('#table-scroll tbody th')].map(cell => cell.textContent)")
        return names.index(name)

    def click_row(self, name):
        self.browser.run("document.querySelectorAll('#table-scroll tbody tr')[arguments[0]].click()", self.row(name))
        self.browser.settle()

    def focus_lanes(self):
        self.browser.run("document.getElementById('lanes-scroll').focus()")


class TestLooks(Pages):
    def test_every_kind_of_job_is_shown_without_complaint(self):
        for job, words in ((1, "flow solver"), (4, "shrinks and grows"), (512, "large"), (90, "flow solver"),
                           (91, "flow solver"), (92, "flow solver")):
            with self.subTest(job=job):
                self.open(job)
                self.assertIn(words, self.browser.value("document.getElementById('job-title').textContent"))
                self.shoot(f"job{job}")

    def test_a_job_that_waits_says_why_instead_of_drawing(self):
        self.open(90)
        self.assertIn("has not started: PENDING (Priority)", self.browser.value("document.getElementById('empty').textContent"))
        self.assertTrue(self.browser.value("document.getElementById('plots').hidden"))

    def test_a_job_without_telemetry_shows_its_allocation(self):
        self.open(91)
        self.assertIn("No telemetry was recorded", self.browser.value("document.getElementById('empty').textContent"))
        self.assertFalse(self.browser.value("document.getElementById('plots').hidden"))

    def test_what_is_not_active_stands_above_the_lanes(self):
        self.open(4)
        self.assertIn("requested but not active on n4", self.browser.value("document.getElementById('missing').innerText"))

    def test_the_latest_start_is_shown_first_and_others_can_be_chosen(self):
        self.open(92)
        self.assertEqual(1, self.browser.value("sphase.view.start.job.restart_count"))
        options = self.browser.value("[...document.getElementById('start-select').options].map(o => o.textContent)")
        self.assertEqual(["92 start 2", "92 start 1"], [text.split(",")[0] for text in options])
        self.browser.run("const s = document.getElementById('start-select'); s.selectedIndex = 1;"
                         "s.dispatchEvent(new Event('change'))")
        self.assertEqual(0, self.browser.value("sphase.view.start.job.restart_count"))

    def test_dark_and_light_follow_the_system_and_the_button(self):
        self.open(4)
        theme = "document.documentElement.dataset.theme"
        ground = "getComputedStyle(document.body).backgroundColor"
        self.assertEqual("light", self.browser.value(theme))
        light = self.browser.value(ground)
        self.browser.run("document.getElementById('theme-button').click()")
        self.assertEqual("dark", self.browser.value(theme))
        self.assertNotEqual(light, self.browser.value(ground))
        self.shoot("job4-dark")
        self.browser.run("document.getElementById('theme-button').click()")
        self.assertEqual("light", self.browser.value(theme))
        self.browser.run("localStorage.removeItem('sphase-theme')")

    def test_it_can_be_printed(self):
        self.open(4)
        printed = self.browser.print_pdf()
        self.assertTrue(printed.startswith(b"%PDF"))
        if SHOTS:
            pathlib.Path(SHOTS, "job4.pdf").write_bytes(printed)


class TestHostileText(Pages):
    def test_names_that_look_like_scripts_are_shown_as_text(self):
        self.open(1)
        self.assertGreaterEqual(self.row(page_jobs.HOSTILE), 0)
        self.assertEqual(3, self.browser.value("document.querySelectorAll('script').length"))
        self.assertEqual(0, self.browser.value("document.querySelectorAll('img').length"))
        self.assertIn("<img src=x", self.browser.value("document.getElementById('missing').textContent"))
        self.assertIn("<b>bold</b>", self.browser.value("document.getElementById('more').textContent"))
        self.assertEqual(0, self.browser.value("document.querySelectorAll('#more b').length"))

    def test_nothing_but_the_embedded_scripts_can_run_or_load(self):
        self.open(1)
        self.browser.run("const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
                         "document.body.append(s); const i = new Image(); i.src = 'http://127.0.0.1:9/x.png';"
                         "document.body.append(i)")
        self.browser.settle()
        self.assertIsNone(self.browser.value("window.ran ?? null"))
        said = " ".join(entry["message"] for entry in self.browser.log())
        self.assertIn("script-src", said)
        self.assertIn("img-src", said)


class TestHover(Pages):
    def test_values_of_the_charts_are_those_of_the_database(self):
        self.open(1)
        before, after = self.db(
            "SELECT s.time_ns, s.cpu_time_ns, memory_anon_bytes FROM sample s JOIN run USING (run_id) WHERE job_id = 1"
            " AND step = '0' AND s.time_ns IN (?, ?) ORDER BY s.time_ns", page_jobs.at(41), page_jobs.at(42))
        script, = self.db("SELECT memory_anon_bytes FROM sample JOIN run USING (run_id) WHERE job_id = 1 AND"
                          " step = 'batch' LIMIT 1")
        busy = (after[1] - before[1]) / (after[0] - before[0]) + 0.02
        text = " ".join(self.hover(41.5, "#charts .chart:nth-child(1) .plot"))
        self.assertIn(f"CPUs busy: {busy:.2f}", text)
        self.assertIn("allocated: 8 ", text)
        gib = (before[2] + script[0]) / (1 << 30)
        self.assertIn(f"Memory: {gib:.2f} GiB", " ".join(self.hover(41.5, "#charts .chart:nth-child(2) .plot")))

    def test_where_samples_are_missing_nothing_is_known(self):
        self.open(1)
        self.assertIn("CPUs busy: –", " ".join(self.hover(64, "#charts .chart:nth-child(1) .plot")))

    def test_a_phase_in_the_lanes_says_what_it_used(self):
        self.open(1)
        box = self.browser.box("#lanes-canvas")
        y = box["y"] + self.browser.value("22 + 20 + 32 + 4 + 2 * 18 + 9")
        self.browser.mouse((self.x_of(29), y))
        text = self.browser.value("document.getElementById('tip').innerText")
        for words in ("phase iterate, step 0", "took 8 s", "CPU time 42 s", "5.25 CPUs busy",
                      "peak memory 300 MiB", "instructions per cycle: 1.1"):
            self.assertIn(words, text)

    def test_allocated_follows_shrink_and_growth(self):
        self.open(4)
        for time_s, cpus in ((120, 32), (300, 16), (500, 24)):
            text = " ".join(self.hover(time_s, "#charts .chart:nth-child(1) .plot"))
            self.assertIn(f"allocated: {cpus}", text)

    def test_an_idle_node_is_called_idle(self):
        self.open(4)
        at = self.browser.value("(() => { const b = document.getElementById('lanes-canvas').getBoundingClientRect();"
                                " return b.y })()")
        lane_tops = 22 + 20 + 32 + 80 + 62 + 30  # axis, events, job, n1, n2, into n3
        self.browser.mouse((self.x_of(170), at + lane_tops))
        self.assertIn("idle: allocated, no process of the job", self.browser.value("document.getElementById('tip').innerText"))


class TestZoom(Pages):
    def test_drag_zooms_and_a_double_click_shows_all_again(self):
        self.open(1)
        y = self.middle_of("#lanes")
        self.browser.mouse((self.x_of(30), y), "down", (self.x_of(40), y), (self.x_of(60), y), "up")
        self.assert_window(30, 60, 0.3)
        self.assertIn("30 s)", self.browser.value("document.getElementById('window-text').textContent").replace("29.9 s", "30 s").replace("30.1 s", "30 s"))
        self.browser.mouse((self.x_of(60), y), "down", "up", "down", "up")
        self.assert_window(0, 120, 0)

    def test_the_wheel_zooms_around_the_pointer_with_ctrl(self):
        self.open(1)
        self.browser.wheel(self.x_of(60), self.middle_of("#lanes"), -120, ctrl=True)
        begin, end = self.window()
        self.assertLess(end - begin, 100)
        self.assertAlmostEqual((begin + end) / 2, 60, delta=0.5)

    def test_all_of_it_works_by_keys(self):
        self.open(1)
        self.focus_lanes()
        self.browser.keys("+", "+")
        begin, end = self.window()
        self.assertAlmostEqual(end - begin, 120 * 0.49, delta=0.1)
        self.browser.keys("ArrowRight")
        self.assertGreater(self.window()[0], begin)
        self.browser.keys("-", "-", "-")
        self.assert_window(0, 120, 0)
        self.browser.keys("ArrowDown", "]")
        self.assertIn("n1: phase", self.browser.value("document.getElementById('spoken').textContent"))
        self.browser.keys("Enter")
        self.assertLess(self.window()[1] - self.window()[0], 60)
        self.browser.keys("Escape", "Escape")
        self.assert_window(0, 120, 0)
        self.browser.keys("?")
        self.assertTrue(self.browser.value("document.getElementById('help').open"))
        self.shoot("help")
        self.browser.keys("Escape")
        self.assertFalse(self.browser.value("document.getElementById('help').open"))

    def test_tab_reaches_the_lanes_and_the_table(self):
        self.open(1)
        reached = set()
        for _ in range(20):
            self.browser.keys("Tab")
            reached.add(self.browser.value("document.activeElement.id || document.activeElement.tagName"))
        self.assertLessEqual({"theme-button", "zoom-in", "lanes-scroll", "colour-select", "TR"}, reached)


class TestTable(Pages):
    def test_a_row_marks_its_phase_and_enter_zooms_to_it(self):
        self.open(1)
        self.click_row("write")
        self.assertEqual("write", self.browser.value("sphase.view.picked.name"))
        self.shoot("job1-picked")
        self.browser.run("document.querySelectorAll('#table-scroll tbody tr')[arguments[0]].focus()", self.row("write"))
        self.browser.keys("Enter")
        begin, end = self.window()
        self.assertLess(begin, 97)
        self.assertGreater(end, 118)
        self.assertLess(end - begin, 30)

    def test_each_instance_can_be_listed(self):
        self.open(1)
        self.browser.run("document.getElementById('instances-box').click()")
        self.assertGreaterEqual(self.row("iterate #8"), 0)

    def test_counters_are_charted_on_demand(self):
        self.open(1)
        self.browser.run("const s = document.getElementById('counter-select'); s.value = 'ipc';"
                         "s.dispatchEvent(new Event('change'))")
        self.browser.settle()
        self.assertIn("Instructions per cycle: 1.1", " ".join(self.hover(29, "#charts .chart:nth-child(4) .plot")))
        self.assertIn("Instructions per cycle: 0.9", " ".join(self.hover(26, "#charts .chart:nth-child(4) .plot")))
        self.shoot("job1-ipc")


class TestManyNodes(Pages):
    def test_the_last_of_512_nodes_can_be_reached(self):
        self.open(512)
        self.focus_lanes()
        self.browser.keys("l", "l")  # thin: 16 pixels each
        self.browser.run("for (let i = 0; i < 60; i++) document.getElementById('lanes-scroll').dispatchEvent("
                         "new KeyboardEvent('keydown', {key: 'PageDown', bubbles: true}))")
        self.browser.settle()
        self.assertIn("node0512", self.browser.value("document.getElementById('spoken').textContent"))
        self.assertGreater(self.browser.value("document.getElementById('lanes-scroll').scrollTop"), 5000)
        self.browser.keys("n")
        self.assertEqual(511, self.browser.value("sphase.view.node"))
        self.shoot("job512-thin")

    def test_colour_shows_how_much_is_used(self):
        self.open(512)
        self.browser.keys("c")
        self.assertEqual("cpus", self.browser.value("sphase.view.colour"))
        self.shoot("job512-cpus")

    def test_zoom_takes_less_than_a_blink(self):
        self.open(512)
        took_ms = self.browser.run("const t = performance.now(); for (let i = 0; i < 5; i++) { sphase.view.zoom(0.9);"
                                   " for (const listen of sphase.view.listeners) listen({window: true}) }"
                                   " return (performance.now() - t) / 5")
        self.assertLess(took_ms, 1000)  # some 60 on an idle machine


class TestLiveData(Pages):
    def test_newer_data_leaves_window_and_selection_as_they_are(self):
        self.open(1)
        self.browser.run("sphase.view.show(20e6, 40e6)")
        self.click_row("write")
        self.browser.run("const data = JSON.parse(document.getElementById('data').textContent);"
                         "data.starts[0].length_us += 60e6; sphase.show(data)")
        self.browser.settle()
        self.assert_window(20, 40, 0.001)
        self.assertEqual("write", self.browser.value("sphase.view.picked.name"))
        self.assertEqual(180e6, self.browser.value("sphase.view.start.length"))

    def test_a_beginning_that_moves_leaves_the_window_at_its_time_of_day(self):
        self.open(1)
        self.browser.run("sphase.view.show(20e6, 40e6)")
        self.browser.run("const data = JSON.parse(document.getElementById('data').textContent);"
                         "data.starts[0].begin_us -= 5e6; sphase.show(data)")
        self.assert_window(25, 45, 0.001)

    def test_a_job_that_begins_while_the_page_is_open_is_drawn(self):
        self.open(1)
        started = self.browser.value("document.getElementById('data').textContent")
        self.open(90)
        self.browser.run("sphase.show(JSON.parse(arguments[0]))", started)
        self.browser.settle()
        self.assertFalse(self.browser.value("document.getElementById('plots').hidden"))
        self.assertIn("CPUs busy: ", " ".join(self.hover(41.5, "#charts .chart:nth-child(1) .plot")))

    def test_a_whole_window_stays_whole(self):
        self.open(1)
        self.browser.run("const data = JSON.parse(document.getElementById('data').textContent);"
                         "data.starts[0].length_us += 60e6; sphase.show(data)")
        self.assert_window(0, 180, 0)


if __name__ == "__main__":
    unittest.main()
