// Reading the notes that sphase_note_write() (common/note.h) left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sphase {

struct NoteFile {
  std::string path;
  std::string cluster;
  std::int64_t job_id = 0;
  std::int64_t restart_count = 0;
  std::string step;
  std::string node;
  std::int64_t time_ns = 0;
  std::string code;
  std::string text;
};

/// nullopt: cut, or not a note. Unknown keys are passed over (a later version may add some).
std::optional<NoteFile> parse_note(std::string_view text);

/// All notes of a folder, oldest first; empty if there is none. At most 1000.
std::vector<NoteFile> read_notes(const std::string& folder);

}  // namespace sphase
