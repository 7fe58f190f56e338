// Turns markers into phases: the nesting of every thread, what was forgotten, what came twice.
//
// Pure: no clock, no file, no thread. It sees what a hostile program may send, so everything in it
// is bounded: paths, streams, instances kept.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "spank/recorder/phases/phase_row.h"
#include "spank/recorder/sources/counter_source.h"

namespace sphase {

/// Who marks: one thread of one process of one task; or the shell of a task (client and tid 0).
struct StreamId {
  bool shell = false;
  std::uint32_t task = 0;
  std::uint32_t client = 0;
  std::uint32_t tid = 0;
  auto operator<=>(const StreamId&) const = default;
};

class PhaseTracker {
 public:
  /// code, sentence: rows of table `notice`. Called at most once per code and subject.
  using Notice = std::function<void(std::string_view code, std::string text)>;
  explicit PhaseTracker(Notice notice) : notice_(std::move(notice)) {}

  /// `depth`: phases open in that thread before, as the writer counts; negative: not known.
  /// `dropped`: markers were lost since this stream's last one, so ends may be missing.
  /// Cost: about 0.3 µs.
  void begin(const StreamId& id, std::string_view name, int depth, bool dropped, const Edge& edge);
  /// An empty name ends the innermost phase. `depth`: phases left open in that thread after.
  void end(const StreamId& id, std::string_view name, int depth, bool dropped, const Edge& edge);

  /// Closes what a process, a task or everybody left open, flagged `unclosed`.
  void close_client(std::uint32_t client, const Edge& edge);
  void close_task(std::uint32_t task, const Edge& edge);
  void close_all(const std::function<Edge(std::uint32_t task)>& edge_of);

  /// A reading of the step's memory on this node: raises the peak of every open phase. Read it
  /// before handing on an end, so that what the phase still held counts for it.
  void memory_seen(const Memory& memory, std::int64_t time_ns);
  /// Most memory charged since the last call, page cache too; read and set anew at `time_ns`, when
  /// the page cache was `file_bytes`. Phases whose edges all had such a reading have exact peaks.
  void peak_seen(std::int64_t peak_bytes, std::int64_t file_bytes, std::int64_t time_ns);
  bool any_open() const { return open_count_ > 0; }
  /// The largest `held` that would still raise nobody's peak; to avoid reading memory.stat.
  std::int64_t lowest_open_peak() const;

  /// Path of the innermost open phase of a stream, "" outside of all; for values and attributes.
  std::string path_of(const StreamId& id) const;

  /// Rows that are new or changed since the last call: closed phases, and newly opened ones with
  /// end_ns unset. `now_ns` decides which folded rows are due.
  std::vector<PhaseRow> take_rows(std::int64_t now_ns, bool last = false);

  static constexpr std::size_t kMaxPaths = 4096;
  static constexpr std::size_t kMaxStates = 16384;  // tasks times paths, about 60 MB
  static constexpr std::size_t kMaxStreams = 16384;
  static constexpr std::size_t kMaxNumbered = 1'000'000;  // streams times paths, about 60 MB
  static constexpr std::int64_t kMaxKept = 10'000;        // single instances per task and path
  static constexpr std::int64_t kMaxPerSecond = 100;      // likewise
  static constexpr std::size_t kReopenable = 8;
  static constexpr std::int64_t kFreshNs = 2'000'000;  // age of a memory reading that still counts

 private:
  using PathId = std::uint32_t;
  struct Instance {
    std::int64_t number = 0;
    int depth = 0;
    std::int64_t count = 0;
    std::set<StreamId> streams;
    int inside = 0;  // begins without an end
    Edge first, last;
    std::int64_t wall_ns = 0;
    std::int64_t held_peak = -1;
    std::int64_t file_most = 0;
    std::optional<std::int64_t> mark_at_begin, mark_now;  // kernel's high-water mark
    bool peaks_from_begin = false;                        // peak_seen() was called at its begin
    std::int64_t peaks_until_ns = -1;  // … and last at this time while it was open
    bool peak_exact = false;           // once closed: both edges, and all between them
    std::uint32_t flags = 0;
    bool told_open = false;
  };
  struct Fold {  // many short instances as one row
    Instance sum;
    std::int64_t due_ns = 0;
  };
  struct PathState {  // per scope, task and path
    std::int64_t next_number = 1;
    std::map<std::int64_t, Instance> open;
    std::deque<Instance> closed;  // the last few: a slower thread may still come
    std::int64_t kept = 0;
    std::int64_t second_ns = 0;  // start of the current second, and closed in it
    std::int64_t in_second = 0;
    std::optional<Fold> fold;
    std::int64_t folds = 0;
  };
  struct Frame {
    PathId path = 0;
    std::int64_t number = 0;
    std::int64_t begin_ns = 0;
    std::size_t name_hash = 0;  // as marked, even where the path is "(other)"
  };
  struct Stream {
    std::vector<Frame> stack;
    std::int64_t last_ns = 0;  // of its markers: a stream's time never goes back
    std::unordered_map<PathId, std::int64_t> last_number;
  };
  using StateKey = std::uint64_t;

  PathId path_id(PathId parent, std::string_view name);
  PathId other_path();
  PathId affordable(const StreamId& id, PathId path);
  static StateKey state_key(const StreamId& id, PathId path);
  Stream* stream(const StreamId& id);
  PathId parent_of(const StreamId& id, const Stream& stream) const;
  int depth_of(const StreamId& id, const Stream& stream) const;
  Instance& enter(PathState& state, const StreamId& id, Stream& stream, PathId path,
                  const Edge& edge);
  void remember_number(Stream& stream, PathId path, std::int64_t number);
  void pop(const StreamId& id, Stream& stream, Edge edge, std::uint32_t flags);
  void close(const StreamId& id, PathId path, PathState& state, std::int64_t number);
  void keep_or_fold(const StreamId& id, PathId path, PathState& state, Instance instance);
  void add_to_fold(PathState& state, const Instance& instance);
  bool end_elsewhere(const StreamId& id, std::string_view name, const Edge& edge);
  bool end_named(const StreamId& id, Stream& stream, std::string_view name, const Edge& edge);
  PhaseRow row(StateKey key, const Instance& instance, bool open) const;
  PhaseRow fold_row(StateKey key, const Fold& fold) const;
  void notice_once(std::string_view code, const std::string& subject, std::string text);
  void close_if(const std::function<bool(const StreamId&)>& wanted,
                const std::function<Edge(std::uint32_t)>& edge_of);

  Notice notice_;
  std::set<std::string> noticed_;
  std::vector<std::string> paths_{""};                // [PathId], 0 = outside of all
  std::unordered_map<std::string, PathId> children_;  // parent id and name
  std::map<StreamId, Stream> streams_;
  std::size_t busy_streams_ = 0;  // with open phases
  std::size_t numbered_ = 0;      // entries of all last_number
  std::unordered_map<StateKey, PathState> states_;
  std::set<StateKey> with_fold_;
  std::set<StateKey> with_open_;
  std::vector<PhaseRow> rows_;
  std::int64_t open_count_ = 0;
  std::optional<Memory> memory_;
  std::int64_t memory_time_ns_ = 0;
  std::int64_t peak_time_ns_ = -1;  // of the last peak_seen()
  std::int64_t peak_file_bytes_ = 0;
};

}  // namespace sphase
