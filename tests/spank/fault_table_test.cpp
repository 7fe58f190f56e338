// Whatever is wrong on our side: every hook returns 0 within its time, and the reason is kept.
#include <doctest/doctest.h>

#include <chrono>

#include "tests/spank/host_run.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

/// All waits of a step together are at most 50 + 50 + 250 ms. The rest is for a busy machine.
constexpr long kMostMs = 350 + 1500;

void check_unharmed(const HostResult& result) {
  CAPTURE(result.text);
  CHECK(result.exit_code == 0);
  CHECK(result.has("failed 0\n"));
  CHECK(result.has("done\n"));
  for (const HookLine& line : result.hooks) {
    CAPTURE(line.name);
    CHECK(line.rc == 0);
    CHECK(line.strangers == 0);
    if (line.threads >= 0) CHECK(line.threads == 1);
  }
  CHECK(result.total_ms() <= kMostMs);
  CHECK_FALSE(result.has("error "));  // slurmstepd would copy it into the job's output
}

/// One of the notes has this code and says this.
void check_note(const HostPlace& place, const std::string& code, const std::string& part) {
  bool found = false;
  std::string all;
  for (const NoteFile& note : place.notes()) {
    all += note.code + ": " + note.text + "\n";
    found = found || (note.code == code && note.text.find(part) != std::string::npos);
    CHECK(note.job_id == 42);
    CHECK(note.node == "fake1");
    CHECK(note.cluster == "fake");
    CHECK(note.step == "0");
  }
  CAPTURE(all);
  CHECK(found);
}

bool is_gone(const std::string& pid_file) {
  return poll_until([&] {
    const std::string text = text_of(pid_file);
    return !text.empty() && kill(std::stoi(text), 0) != 0;
  });
}

}  // namespace

TEST_CASE("no recorder installed") {
  HostPlace place;
  place.recorder = "/no/such/sphase-recorder";
  const HostResult result = run_host(place, {"option=on"});
  check_unharmed(result);
  CHECK(result.has("socket none"));
  check_note(place, "not-active", "cannot be started: No such file or directory");
}

TEST_CASE("a recorder that may not be executed") {
  HostPlace place;
  place.recorder = place.folder().write("recorder", "x");
  const HostResult result = run_host(place, {"option=on"});
  check_unharmed(result);
  check_note(place, "not-active", "cannot be started: Permission denied");
}

TEST_CASE("a recorder that is no program") {
  HostPlace place;
  place.recorder = place.folder().write("recorder",
                                        "\x7f"
                                        "ELF and no more");
  chmod(place.recorder.c_str(), 0755);
  const HostResult result = run_host(place, {"option=on"});
  check_unharmed(result);
  CHECK(result.has("socket none"));
  check_note(place, "not-active", "cannot be started: Exec format error");
}

TEST_CASE("a folder where the recorder should be") {
  HostPlace place;
  place.recorder = place.folder().path();
  check_unharmed(run_host(place, {"option=on"}));
  check_note(place, "not-active", "cannot be started: Permission denied");
}

TEST_CASE("a recorder that ends at once") {
  HostPlace place;
  place.recorder = place.script("exit 3");
  check_unharmed(run_host(place, {"option=on"}));
  const auto notes = place.notes();
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].text.find("the recorder ended") == 0);
}

TEST_CASE("a recorder that sleeps for ever is ended, within the time that a job may wait") {
  HostPlace place;
  const std::string pid_file = place.folder() / "pid";
  place.recorder = place.script("echo $$ > " + pid_file + "; exec sleep 1000");
  const HostResult result = run_host(place, {"option=on", "tasks=4"});
  check_unharmed(result);
  check_note(place, "recorder-slow", "did not answer in time");
  check_note(place, "recorder-slow", "was ended");
  CHECK(is_gone(pid_file));
}

TEST_CASE("a recorder that is stopped is ended too") {
  HostPlace place;
  const std::string pid_file = place.folder() / "pid";
  place.recorder = place.script("echo $$ > " + pid_file + "; kill -STOP $$; exec sleep 1000");
  check_unharmed(run_host(place, {"option=on"}));
  check_note(place, "recorder-slow", "was ended");
  CHECK(is_gone(pid_file));
}

TEST_CASE("a recorder that answers garbage without end") {
  HostPlace place;
  const std::string pid_file = place.folder() / "pid";
  place.recorder = place.script("echo $$ > " + pid_file +
                                "; while echo garbage >&3; do :; done; exec sleep 1000");
  check_unharmed(run_host(place, {"option=on", "tasks=2"}));
  check_note(place, "recorder-slow", "did not answer in time");
  CHECK(is_gone(pid_file));
}

TEST_CASE("a recorder that dies in the middle of the step") {
  HostPlace place;
  place.recorder = place.script("head -c 1 <&3 >/dev/null; exit 0");
  check_unharmed(run_host(place, {"option=on", "tasks=3"}));
  const auto notes = place.notes();
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].code != "recorder-slow");
}

TEST_CASE("a run folder that cannot be made: the step is recorded, but nobody can mark") {
  HostPlace place;
  place.run_dir = place.folder().write("file", "");
  const HostResult result = run_host(place, {"option=on"});
  check_unharmed(result);
  if (result.has("did not answer")) return;  // too busy a machine for what follows
  CHECK(poll_until(
      [&] {
        return place.text("SELECT text FROM notice WHERE text LIKE 'programs cannot mark phases:%'")
            .has_value();
      },
      15'000));
}

TEST_CASE("where even the note cannot be written, slurmd's log has both reasons") {
  HostPlace place;
  place.recorder = "/no/such/recorder";
  place.run_dir = place.folder().write("file", "");
  const HostResult result = run_host(place, {"option=on"});
  check_unharmed(result);
  CHECK(
      result.has("log sphase: step 42.0: the recorder /no/such/recorder cannot be started: No "
                 "such file or directory"));
  CHECK(result.has("log sphase: notes: cannot write to " + place.run_dir +
                   "/notes: Not a directory"));
}

TEST_CASE("no descriptor left") {
  HostPlace place;
  const HostResult result = run_host(place, {"option=on", "nofile=1"});
  check_unharmed(result);
  CHECK(result.has("socket none"));
  CHECK(result.has("cannot be started: Too many open files"));
}

TEST_CASE("a slurmstepd that may open too few files is left alone") {
  HostPlace place;
  const HostResult result = run_host(place, {"option=on", "files=40"});
  check_unharmed(result);
  CHECK(result.has("socket none"));
  check_note(place, "not-active", "may open only 40 files");
}

TEST_CASE("no space left for a note (needs root)") {
  HostPlace place;
  const SmallDisk disk(place.folder() / "run", "4k");
  if (!disk) {
    MESSAGE("skipped: only root can mount a small tmpfs");
    return;
  }
  { std::ofstream(disk.path() + "/fill") << std::string(8192, 'x'); }
  place.recorder = "/no/such/recorder";
  const HostResult result = run_host(place, {"option=on"});
  check_unharmed(result);
  CHECK(result.has("notes: cannot write to " + place.run_dir + "/notes: No space left on device"));
}

TEST_CASE("no space left for node.db (needs root)") {
  HostPlace place;
  const SmallDisk disk(place.folder() / "db", "4k");
  if (!disk) {
    MESSAGE("skipped: only root can mount a small tmpfs");
    return;
  }
  { std::ofstream(disk.path() + "/fill") << std::string(8192, 'x'); }
  const HostResult result = run_host(place, {"option=on"});
  check_unharmed(result);
  if (result.has("did not answer")) return;  // too busy a machine for what follows
  CHECK(poll_until([&] { return !place.notes().empty(); }, 15'000));
  check_note(place, "store-failed", "node.db could not be written, this run is lost");
}

TEST_CASE("a node_db path that is too long for this node's name") {
  HostPlace place;
  place.node_db = "/" + std::string(240, 'x') + "/%n%n%n%n";
  const HostResult result = run_host(place, {"option=on"});
  check_unharmed(result);
  check_note(place, "not-active", "is too long");
}

TEST_CASE("slips in plugstack.conf are logged, and the rest of it holds") {
  HostPlace place;
  const HostResult result = run_host(place, {"option=on", "arg:period=1", "arg:colour=blue"});
  check_unharmed(result);
  CHECK(result.has("log sphase: plugstack.conf: \"period=1\" is ignored; use period=1s"));
  CHECK(result.has("log sphase: plugstack.conf: unknown argument \"colour=blue\""));
  CHECK(result.has("socket " + place.run_dir));
  const auto noted = [&](const std::string& part) {
    const std::string sql = "SELECT text FROM notice WHERE code = 'config' AND text LIKE '%" + part;
    for (const NoteFile& note : place.notes()) {
      if (note.code == "config" && note.text.find(part) != std::string::npos) return true;
    }
    return place.text(sql + "%'").has_value();  // the recorder has imported the note already
  };
  CHECK(poll_until([&] { return noted("period=1") && noted("colour=blue"); }));
}
