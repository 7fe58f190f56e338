// What `sphase report`, `jobs` and `export` say, wherever it is asked: of a file, or of the
// collector.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/answer/viewer.h"
#include "common/sqlite_db.h"

namespace sphase {

/// One command with its options; what it has no use for stays as it is.
struct Question {
  std::string command;            // "report" | "jobs" | "export"
  std::vector<std::string> jobs;  // as JobSelector has them; of export none: all
  std::string cluster, user, table;
  std::string format = "text";  // "text" | "json" | "csv" | "html" | "jsonl"
  bool instances = false, nodes = false, all = false;
};

/// As a JSON object, for the wire.
std::string text_of(const Question& question);
/// Takes any text. nullopt: it is no question.
std::optional<Question> parse_question(std::string_view text);

struct Reply {
  int code = 0;      // exit code of the command
  std::string text;  // where `code` is not 0 a sentence for stderr; else what was not written yet
};

/// Takes a part of what goes to stdout. False: no more of it.
using Write = std::function<bool(std::string_view)>;

/// Answers from a database. A job that is not the viewer's is answered like one that does not
/// exist.
Reply answer(Database& db, const Viewer& viewer, const Question& question, const Write& write);

/// What one reply over the wire may hold. Unit: B.
inline constexpr std::size_t kMostReplyBytes = 20 << 20;

/// The same as one value. A reply of more than `most_bytes` becomes a sentence that says so.
Reply answer_whole(Database& db, const Viewer& viewer, const Question& question,
                   std::size_t most_bytes = kMostReplyBytes);

}  // namespace sphase
