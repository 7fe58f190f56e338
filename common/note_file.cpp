#include "common/note_file.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace sphase {
namespace {

bool set_number(std::string_view text, std::int64_t& out) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

bool set_field(NoteFile& note, std::string_view key, std::string_view value) {
  if (key == "cluster") note.cluster = value;
  if (key == "step") note.step = value;
  if (key == "node") note.node = value;
  if (key == "code") note.code = value;
  if (key == "text") note.text = value;
  if (key == "job_id") return set_number(value, note.job_id);
  if (key == "restart_count") return set_number(value, note.restart_count);
  if (key == "time_ns") return set_number(value, note.time_ns);
  return true;
}

}  // namespace

std::optional<NoteFile> parse_note(std::string_view text) {
  NoteFile note;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;  // cut: every line ends
    const std::string_view line = text.substr(0, end);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    if (!set_field(note, line.substr(0, equals), line.substr(equals + 1))) return std::nullopt;
    text.remove_prefix(end + 1);
  }
  if (note.code.empty() || note.node.empty() || note.job_id == 0 || note.time_ns == 0) {
    return std::nullopt;
  }
  return note;
}

std::vector<NoteFile> read_notes(const std::string& folder) {
  constexpr std::size_t kMost = 1000;
  std::vector<NoteFile> notes;
  std::error_code failed;
  std::filesystem::directory_iterator at(folder, failed);
  for (; !failed && at != std::filesystem::directory_iterator(); at.increment(failed)) {
    const auto& entry = *at;
    std::error_code ignored;
    if (notes.size() >= kMost) break;
    if (entry.path().extension() != ".note" || !entry.is_regular_file(ignored)) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    auto note = parse_note(text);
    if (!note) continue;
    note->path = entry.path();
    notes.push_back(std::move(*note));
  }
  std::sort(notes.begin(), notes.end(),
            [](const NoteFile& a, const NoteFile& b) { return a.time_ns < b.time_ns; });
  return notes;
}

}  // namespace sphase
