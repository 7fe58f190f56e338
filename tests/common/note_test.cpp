// Writing notes (common/note.c) and reading them back (common/note_file.cpp).
#include "common/note.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>

#include "common/clock.h"
#include "common/note_file.h"
#include "tests/common/tools.h"

using sphase::NoteFile;
using sphase::parse_note;
using sphase::read_notes;
using namespace sphase::testing;

namespace {

sphase_note note_of(const char* text) { return {"c1", 42, 1, "batch", "n1", "not-active", text}; }

int write_note(const std::string& run_dir, const char* text = "why") {
  const sphase_note note = note_of(text);
  return sphase_note_write(run_dir.c_str(), &note);
}

constexpr const char* kWhole =
    "cluster=c\njob_id=7\nrestart_count=0\nstep=0\nnode=n\ntime_ns=5\ncode=gap\ntext=a=b\n";

}  // namespace

TEST_CASE("a note is read back as it was written") {
  const TempFolder folder;
  const std::int64_t before = sphase::epoch_ns();
  REQUIRE(write_note(folder / "run", "the disk is full") == 0);
  const auto notes = read_notes(folder / "run/notes");
  REQUIRE(notes.size() == 1);
  const NoteFile& note = notes[0];
  CHECK(note.cluster == "c1");
  CHECK(note.job_id == 42);
  CHECK(note.restart_count == 1);
  CHECK(note.step == "batch");
  CHECK(note.node == "n1");
  CHECK(note.code == "not-active");
  CHECK(note.text == "the disk is full");
  CHECK(note.time_ns >= before);
  CHECK(note.time_ns <= sphase::epoch_ns());
  CHECK(note.path.find(folder / "run/notes/" + std::to_string(note.time_ns)) == 0);
}

TEST_CASE("notes belong to their owner, whatever the umask") {
  const TempFolder folder;
  for (const mode_t mask : {0000, 0022, 0077}) {
    const mode_t before = umask(mask);
    const std::string run = folder / std::to_string(mask);
    CHECK(write_note(run) == 0);
    umask(before);
    CHECK(mode_of(run) == 0711);
    CHECK(mode_of(run + "/notes") == 0700);
    REQUIRE(read_notes(run + "/notes").size() == 1);
    CHECK(mode_of(read_notes(run + "/notes")[0].path) == 0600);
  }
}

TEST_CASE("a newline in a note's text becomes a space") {
  const TempFolder folder;
  REQUIRE(write_note(folder.path(), "one\ntwo\r\njob_id=1\n") == 0);
  const auto notes = read_notes(folder / "notes");
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].text == "one two  job_id=1 ");
  CHECK(notes[0].job_id == 42);
}

TEST_CASE("a newline in any other field cannot forge a line") {
  const TempFolder folder;
  const sphase_note note{"c\njob_id=9", 42, 0, "0\ncode=x", "n\nnode=m", "gap", "t"};
  REQUIRE(sphase_note_write(folder.path().c_str(), &note) == 0);
  const auto notes = read_notes(folder / "notes");
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].job_id == 42);
  CHECK(notes[0].cluster == "c job_id=9");
  CHECK(notes[0].code == "gap");
  CHECK(notes[0].node == "n node=m");
}

TEST_CASE("a text that is too long is cut and the note stays whole") {
  const TempFolder folder;
  REQUIRE(write_note(folder.path(), std::string(5000, 'x').c_str()) == 0);
  const auto notes = read_notes(folder / "notes");
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].text.size() > 800);
  CHECK(text_of(notes[0].path).size() <= 1024);
}

TEST_CASE("fields that leave no room for a text are refused") {
  const TempFolder folder;
  const std::string name(2000, 'n');
  const sphase_note note{"c", 1, 0, "0", name.c_str(), "gap", "t"};
  CHECK(sphase_note_write(folder.path().c_str(), &note) == EMSGSIZE);
  CHECK(read_notes(folder / "notes").empty());
}

TEST_CASE("at most 1000 notes are kept") {
  const TempFolder folder;
  int written = 0;
  int failed = 0;
  for (int i = 0; i < 1010; ++i) {
    failed = write_note(folder.path());
    if (failed == 0) ++written;
  }
  CHECK(failed == ENOSPC);
  CHECK(written <= 1000);
  CHECK(written >= 990);
  CHECK(static_cast<int>(read_notes(folder / "notes").size()) == written);
}

TEST_CASE("where the run folder cannot be made, the errno says why") {
  const TempFolder folder;
  CHECK(write_note(folder / "no/such/folder") == ENOENT);
  folder.write("file", "");
  CHECK(write_note(folder / "file") == ENOTDIR);
  CHECK(write_note("/" + std::string(600, 'x')) == ENAMETOOLONG);
}

TEST_CASE("where the run folder is not writable, the errno says why") {
  const TempFolder folder;
  chmod(folder.path().c_str(), 0755);
  const int code = in_child([&] {
    if (geteuid() == 0 && setuid(65534) != 0) return 1;
    if (geteuid() != 65534) chmod(folder.path().c_str(), 0555);
    return write_note(folder.path()) == EACCES ? 0 : 2;
  });
  CHECK(code == 0);
}

TEST_CASE("on a full disk no half note is left (needs root)") {
  const TempFolder folder;
  const SmallDisk disk(folder / "disk", "4k");
  if (!disk) {
    MESSAGE("skipped: only root can mount a small tmpfs");
    return;
  }
  std::ofstream(disk.path() + "/fill") << std::string(8192, 'x');
  CHECK(write_note(disk.path()) == ENOSPC);
  CHECK(names_in(disk.path() + "/notes").empty());
}

TEST_CASE("a note's text may hold an equals sign") {
  const auto note = parse_note(kWhole);
  REQUIRE(note);
  CHECK(note->text == "a=b");
}

TEST_CASE("a cut note is none, wherever it was cut") {
  const std::string whole = kWhole;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto note = parse_note(whole.substr(0, length));
    // Cut between two lines it can only miss what is not needed: its text.
    if (note) CHECK(whole.substr(length) == "text=a=b\n");
  }
}

TEST_CASE("an unknown key is passed over") {
  const auto note = parse_note(std::string("colour=blue\n") + kWhole);
  REQUIRE(note);
  CHECK(note->job_id == 7);
}

TEST_CASE("what is not a note is none") {
  for (const char* text : {"", "\n", "hello\n", "job_id=x\n", "job_id=99999999999999999999\n",
                           "job_id=7 \n", "node=n\ncode=gap\ntime_ns=5\n"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_note(text));
  }
}

TEST_CASE("a folder gives its whole notes, oldest first, and nothing else") {
  const TempFolder folder;
  folder.write("a.note", "node=n\njob_id=1\ntime_ns=30\ncode=gap\ntext=late\n");
  folder.write("b.note", "node=n\njob_id=1\ntime_ns=10\ncode=gap\ntext=early\n");
  folder.write("c.note", "node=n\njob_id=1\ntime_ns=2");
  folder.write("d.note", "");
  folder.write("e.txt", "node=n\njob_id=1\ntime_ns=20\ncode=gap\ntext=other\n");
  std::filesystem::create_directory(folder / "f.note");
  const auto notes = read_notes(folder.path());
  REQUIRE(notes.size() == 2);
  CHECK(notes[0].text == "early");
  CHECK(notes[1].text == "late");
  CHECK(read_notes(folder / "none").empty());
}
