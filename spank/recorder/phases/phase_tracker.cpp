#include "spank/recorder/phases/phase_tracker.h"

#include <algorithm>
#include <utility>

#include "common/ring.h"
#include "common/vocabulary.h"

namespace sphase {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::size_t kMaxNotices = 100;

}  // namespace

void PhaseTracker::notice_once(std::string_view code, const std::string& subject,
                               std::string text) {
  if (noticed_.size() >= kMaxNotices) return;
  if (noticed_.insert(std::string(code) + subject).second) notice_(code, std::move(text));
}

PhaseTracker::PathId PhaseTracker::path_id(PathId parent, std::string_view name) {
  std::string key(reinterpret_cast<const char*>(&parent), sizeof(parent));
  key += name;
  const auto found = children_.find(key);
  if (found != children_.end()) return found->second;
  if (paths_.size() >= kMaxPaths) {
    notice_once(notice::kLimit, "paths",
                "more than " + std::to_string(kMaxPaths) +
                    " different phases: the others are recorded as (other)");
    return other_path();
  }
  const auto id = static_cast<PathId>(paths_.size());
  paths_.push_back(parent == 0 ? std::string(name) : paths_[parent] + "/" + std::string(name));
  children_.emplace(std::move(key), id);
  return id;
}

PhaseTracker::PathId PhaseTracker::other_path() {
  const PathId other = children_.try_emplace("(other)", paths_.size()).first->second;
  if (other == paths_.size()) paths_.emplace_back("(other)");
  return other;
}

/// The path to record under: (other) once too many tasks have too many paths between them.
PhaseTracker::PathId PhaseTracker::affordable(const StreamId& id, PathId path) {
  if (states_.size() < kMaxStates || states_.contains(state_key(id, path))) return path;
  notice_once(notice::kLimit, "states",
              "more than " + std::to_string(kMaxStates) +
                  " phases of all tasks together: the others are recorded as (other)");
  return other_path();
}

PhaseTracker::StateKey PhaseTracker::state_key(const StreamId& id, PathId path) {
  return (id.shell ? 1ull << 63 : 0) | (static_cast<StateKey>(id.task & 0x7fffffff) << 32) | path;
}

PhaseTracker::Stream* PhaseTracker::stream(const StreamId& id) {
  const auto found = streams_.find(id);
  if (found != streams_.end()) return &found->second;
  if (streams_.size() >= kMaxStreams && busy_streams_ < streams_.size()) {
    // Threads that ended leave empty streams behind; only their numbering is lost with them.
    std::erase_if(streams_, [this](const auto& entry) {
      if (!entry.second.stack.empty()) return false;
      numbered_ -= entry.second.last_number.size();
      return true;
    });
  }
  if (streams_.size() >= kMaxStreams) {
    notice_once(notice::kLimit, "streams",
                "more than " + std::to_string(kMaxStreams) +
                    " threads have open phases: markers of further ones are not recorded");
    return nullptr;
  }
  return &streams_[id];
}

/// A program's phases lie inside those that the shell of its task has open.
PhaseTracker::PathId PhaseTracker::parent_of(const StreamId& id, const Stream& stream) const {
  if (!stream.stack.empty()) return stream.stack.back().path;
  if (id.shell) return 0;
  const auto shell = streams_.find(StreamId{true, id.task, 0, 0});
  if (shell == streams_.end() || shell->second.stack.empty()) return 0;
  return shell->second.stack.back().path;
}

int PhaseTracker::depth_of(const StreamId& id, const Stream& stream) const {
  int depth = static_cast<int>(stream.stack.size());
  if (id.shell) return depth;
  const auto shell = streams_.find(StreamId{true, id.task, 0, 0});
  if (shell != streams_.end()) depth += static_cast<int>(shell->second.stack.size());
  return depth;
}

/// The instance that this begin belongs to. A thread counts its own instances, so that the n-th
/// of each thread is one phase; a thread that is new here joins the one that is open now.
PhaseTracker::Instance& PhaseTracker::enter(PathState& state, const StreamId& id, Stream& stream,
                                            PathId path, const Edge& edge) {
  std::int64_t number = state.next_number;
  const auto last = stream.last_number.find(path);
  if (last != stream.last_number.end()) {
    number = std::min(last->second + 1, state.next_number);
  } else if (!state.open.empty()) {
    number = state.open.rbegin()->first;
  }
  const auto open = state.open.find(number);
  if (open != state.open.end()) {
    if (edge.time_ns < open->second.first.time_ns) open->second.first = edge;
    return open->second;
  }
  const auto closed = std::find_if(state.closed.begin(), state.closed.end(),
                                   [&](const Instance& i) { return i.number == number; });
  if (closed != state.closed.end()) {
    Instance again = std::move(*closed);
    state.closed.erase(closed);
    again.peaks_from_begin = again.peak_exact = false;  // nobody looked in between
    if (edge.time_ns < again.first.time_ns) again.first = edge;
    ++open_count_;
    return state.open.emplace(number, std::move(again)).first->second;
  }
  number = state.next_number++;
  Instance fresh;
  fresh.number = number;
  fresh.depth = depth_of(id, stream);
  fresh.first = edge;
  if (memory_ && edge.time_ns - memory_time_ns_ < kFreshNs) {
    fresh.held_peak = memory_->held().value_or(-1);
    fresh.file_most = memory_->file.value_or(0);
    fresh.mark_at_begin = memory_->peak;
  }
  fresh.peaks_from_begin = peak_time_ns_ >= edge.time_ns;
  ++open_count_;
  return state.open.emplace(number, std::move(fresh)).first->second;
}

/// The n-th instance of a path in a stream. Bounded: where it grows too large all streams forget,
/// and the next instance of each is one of its own again.
void PhaseTracker::remember_number(Stream& stream, PathId path, std::int64_t number) {
  if (numbered_ >= kMaxNumbered) {
    for (auto& [id, other] : streams_) other.last_number.clear();
    numbered_ = 0;
  }
  if (stream.last_number.insert_or_assign(path, number).second) ++numbered_;
}

void PhaseTracker::begin(const StreamId& id, std::string_view name, int depth, bool dropped,
                         const Edge& marked) {
  Stream* const own = stream(id);
  if (own == nullptr || name.empty()) return;
  Edge edge = marked;
  own->last_ns = edge.time_ns = std::max(edge.time_ns, own->last_ns);
  while (depth >= 0 && own->stack.size() > static_cast<std::size_t>(depth)) {
    pop(id, *own, edge, dropped ? kEndLost : kUnclosed);
  }
  if (own->stack.size() >= SPHASE_MAX_DEPTH || depth >= static_cast<int>(SPHASE_MAX_DEPTH)) {
    notice_once(notice::kTooDeep, "",
                "phases nested deeper than " + std::to_string(SPHASE_MAX_DEPTH) +
                    " are not recorded (first: " + std::string(name) + ")");
    return;
  }
  const PathId path = affordable(id, path_id(parent_of(id, *own), name));
  const StateKey key = state_key(id, path);
  PathState& state = states_[key];
  Instance& instance = enter(state, id, *own, path, edge);
  with_open_.insert(key);
  ++instance.inside;
  instance.streams.insert(id);
  instance.first.lag_ns = std::max(instance.first.lag_ns, edge.lag_ns);
  remember_number(*own, path, instance.number);
  if (own->stack.empty()) ++busy_streams_;
  own->stack.push_back(
      Frame{path, instance.number, edge.time_ns, std::hash<std::string_view>{}(name)});
}

/// Leaves the innermost phase of a stream.
void PhaseTracker::pop(const StreamId& id, Stream& stream, Edge edge, std::uint32_t flags) {
  const Frame frame = stream.stack.back();
  stream.stack.pop_back();
  if (stream.stack.empty()) --busy_streams_;
  stream.last_ns = edge.time_ns = std::max(edge.time_ns, stream.last_ns);
  PathState& state = states_[state_key(id, frame.path)];
  const auto found = state.open.find(frame.number);
  if (found == state.open.end()) return;
  Instance& instance = found->second;
  if (instance.count == 0 || edge.time_ns >= instance.last.time_ns) instance.last = edge;
  instance.count += 1;
  instance.wall_ns += edge.time_ns - frame.begin_ns;
  instance.flags |= flags;
  if (--instance.inside <= 0) close(id, frame.path, state, frame.number);
}

void PhaseTracker::close(const StreamId& id, PathId path, PathState& state, std::int64_t number) {
  auto node = state.open.extract(number);
  Instance& closed = node.mapped();
  closed.peak_exact = closed.peaks_from_begin && closed.peaks_until_ns >= closed.last.time_ns;
  --open_count_;
  if (state.open.empty()) with_open_.erase(state_key(id, path));
  keep_or_fold(id, path, state, std::move(node.mapped()));
}

void PhaseTracker::keep_or_fold(const StreamId& id, PathId path, PathState& state,
                                Instance instance) {
  if (instance.last.time_ns - state.second_ns >= kSecondNs) {
    state.second_ns = instance.last.time_ns;
    state.in_second = 0;
  }
  ++state.in_second;
  const StateKey key = state_key(id, path);
  // One that was told as open must be told as closed too.
  if ((state.kept < kMaxKept && state.in_second <= kMaxPerSecond) || instance.told_open) {
    ++state.kept;
    rows_.push_back(row(key, instance, false));
    state.closed.push_back(std::move(instance));
    if (state.closed.size() > kReopenable) state.closed.pop_front();
    return;
  }
  notice_once(notice::kFolded, std::to_string(key),
              "phase " + paths_[path] +
                  " is marked too often to keep each instance: many are folded into one row");
  add_to_fold(state, instance);
  with_fold_.insert(key);
}

void PhaseTracker::add_to_fold(PathState& state, const Instance& instance) {
  if (!state.fold) {
    state.fold = Fold{instance, 0};
    // A path that stays hot gets rarer rows: 1 s, and twice as long after every 100 of them.
    const int doublings = static_cast<int>(std::min<std::int64_t>(state.folds / 100, 12));
    state.fold->due_ns = instance.first.time_ns + (kSecondNs << doublings);
    ++state.folds;
    return;
  }
  Instance& sum = state.fold->sum;
  sum.count += instance.count;
  sum.wall_ns += instance.wall_ns;
  if (instance.first.time_ns < sum.first.time_ns) sum.first = instance.first;
  if (instance.last.time_ns >= sum.last.time_ns) sum.last = instance.last;
  sum.first.lag_ns = std::max(sum.first.lag_ns, instance.first.lag_ns);
  sum.flags |= instance.flags;
  sum.held_peak = std::max(sum.held_peak, instance.held_peak);
  sum.mark_now = instance.mark_now;
  sum.peak_exact = sum.peak_exact && instance.peak_exact;
  for (const StreamId& one : instance.streams) sum.streams.insert(one);
}

/// Ends the phase `name` in the same task but another thread of the same process (or, from the
/// shell, the shell's): begun there, ended here.
bool PhaseTracker::end_elsewhere(const StreamId& id, std::string_view name, const Edge& edge) {
  const std::size_t name_hash = std::hash<std::string_view>{}(name);
  for (auto at = streams_.lower_bound(StreamId{id.shell, id.task, id.client, 0});
       at != streams_.end(); ++at) {
    auto& [other, candidate] = *at;
    if (other.shell != id.shell || other.task != id.task || other.client != id.client) break;
    if (other == id || candidate.stack.empty()) continue;
    if (candidate.stack.back().name_hash != name_hash) continue;
    pop(other, candidate, edge, 0);
    return true;
  }
  return false;
}

bool PhaseTracker::end_named(const StreamId& id, Stream& stream, std::string_view name,
                             const Edge& edge) {
  const std::size_t name_hash = std::hash<std::string_view>{}(name);
  const auto named = [&](const Frame& frame) { return frame.name_hash == name_hash; };
  if (std::none_of(stream.stack.begin(), stream.stack.end(), named)) return false;
  while (!named(stream.stack.back())) pop(id, stream, edge, kUnclosed);
  pop(id, stream, edge, 0);
  return true;
}

void PhaseTracker::end(const StreamId& id, std::string_view name, int depth, bool dropped,
                       const Edge& edge) {
  Stream* const own = stream(id);
  if (own == nullptr) return;
  // Lost ends of inner phases: the writer has fewer open than we do.
  while (depth >= 0 && dropped && own->stack.size() > static_cast<std::size_t>(depth) + 1) {
    pop(id, *own, edge, kEndLost);
  }
  if (name.empty() && !own->stack.empty()) return pop(id, *own, edge, 0);
  if (!name.empty() && end_named(id, *own, name, edge)) return;
  if (!name.empty() && end_elsewhere(id, name, edge)) return;
  if (dropped) return;  // its begin was lost with the ring full, which is counted
  const std::string open = path_of(id);
  notice_once(notice::kUnmatchedEnd, std::string(name),
              "task " + std::to_string(id.task) + " ended phase \"" + std::string(name) +
                  "\" which was not open" + (open.empty() ? "" : " (open was \"" + open + "\")") +
                  "; ignored");
}

void PhaseTracker::close_if(const std::function<bool(const StreamId&)>& wanted,
                            const std::function<Edge(std::uint32_t)>& edge_of) {
  for (auto& [id, stream] : streams_) {
    if (!wanted(id) || stream.stack.empty()) continue;
    const Edge edge = edge_of(id.task);
    while (!stream.stack.empty()) pop(id, stream, edge, kUnclosed);
  }
}

void PhaseTracker::close_client(std::uint32_t client, const Edge& edge) {
  close_if([&](const StreamId& id) { return !id.shell && id.client == client; },
           [&](std::uint32_t) { return edge; });
  std::erase_if(streams_, [&](const auto& entry) {
    if (entry.first.shell || entry.first.client != client) return false;
    numbered_ -= entry.second.last_number.size();
    return true;
  });
}

void PhaseTracker::close_task(std::uint32_t task, const Edge& edge) {
  close_if([&](const StreamId& id) { return id.task == task; },
           [&](std::uint32_t) { return edge; });
}

void PhaseTracker::close_all(const std::function<Edge(std::uint32_t)>& edge_of) {
  close_if([](const StreamId&) { return true; }, edge_of);
}

void PhaseTracker::memory_seen(const Memory& memory, std::int64_t time_ns) {
  memory_ = memory;
  memory_time_ns_ = time_ns;
  const std::int64_t held = memory.held().value_or(-1);
  for (const StateKey key : with_open_) {
    for (auto& [number, instance] : states_[key].open) {
      instance.held_peak = std::max(instance.held_peak, held);
      instance.file_most = std::max(instance.file_most, memory.file.value_or(0));
      if (!instance.mark_at_begin) instance.mark_at_begin = memory.peak;
      instance.mark_now = memory.peak;
    }
  }
}

void PhaseTracker::peak_seen(std::int64_t peak_bytes, std::int64_t file_bytes,
                             std::int64_t time_ns) {
  const std::int64_t held = peak_bytes - std::max(file_bytes, peak_file_bytes_);
  for (const StateKey key : with_open_) {
    for (auto& [number, instance] : states_[key].open) {
      instance.peaks_until_ns = time_ns;
      if (instance.peaks_from_begin) instance.held_peak = std::max(instance.held_peak, held);
    }
  }
  peak_file_bytes_ = file_bytes;
  peak_time_ns_ = time_ns;
}

std::int64_t PhaseTracker::lowest_open_peak() const {
  std::int64_t lowest = INT64_MAX;
  for (const StateKey key : with_open_) {
    for (const auto& [number, instance] : states_.at(key).open) {
      lowest = std::min(lowest, instance.held_peak);
    }
  }
  return lowest;
}

std::string PhaseTracker::path_of(const StreamId& id) const {
  const auto found = streams_.find(id);
  static const Stream kNone;
  return paths_[parent_of(id, found == streams_.end() ? kNone : found->second)];
}

PhaseRow PhaseTracker::row(StateKey key, const Instance& instance, bool open) const {
  PhaseRow out;
  out.shell = (key >> 63) != 0;
  out.task = static_cast<std::uint32_t>((key >> 32) & 0x7fffffff);
  out.path = paths_[key & 0xffffffff];
  out.number = instance.number;
  out.depth = instance.depth;
  out.count = std::max<std::int64_t>(1, instance.count);
  out.threads = static_cast<std::int64_t>(instance.streams.size());
  out.begin_ns = instance.first.time_ns;
  out.flags = instance.flags;
  out.edge_lag_ns = instance.first.lag_ns;
  if (instance.held_peak >= 0) out.memory_peak_bytes = instance.held_peak;
  if (open) return out;
  if (!out.memory_peak_bytes && memory_) out.memory_peak_bytes = memory_->held();

  out.edge_lag_ns = std::max(instance.first.lag_ns, instance.last.lag_ns);
  out.end_ns = instance.last.time_ns;
  out.wall_ns = instance.last.time_ns - instance.first.time_ns;
  out.cpu = cpu_between(instance.first, instance.last);
  out.counts = counts_between(instance.first, instance.last);
  if (out.cpu && std::string_view(out.cpu->source) != "process" &&
      out.edge_lag_ns > instance.last.task_resolution_ns) {
    out.flags |= kLate;
  }
  if (instance.peak_exact) {
    out.memory_peak_source = "peak";
    return out;
  }
  // The kernel's mark rose while the phase was open: its peak was here. The mark counts page cache
  // too; the most page cache seen is taken off, so this stays a lower bound.
  if (instance.mark_at_begin && instance.mark_now && *instance.mark_now > *instance.mark_at_begin) {
    const std::int64_t by_mark = *instance.mark_now - instance.file_most;
    if (by_mark > instance.held_peak) {
      out.memory_peak_bytes = by_mark;
      out.memory_peak_source = "high-water";
    }
  }
  return out;
}

PhaseRow PhaseTracker::fold_row(StateKey key, const Fold& fold) const {
  PhaseRow out = row(key, fold.sum, false);
  out.flags |= kFolded | kInterpolated;
  const std::int64_t span_ns = fold.sum.last.time_ns - fold.sum.first.time_ns;
  out.wall_ns = fold.sum.wall_ns;
  if (span_ns <= 0) return out;
  // Not read at each of its edges: its share of what the task used, by time spent in it.
  const double share =
      std::min(1.0, static_cast<double>(fold.sum.wall_ns) / static_cast<double>(span_ns));
  out.counts = part_of(std::move(out.counts), share);
  if (out.cpu) {
    const std::int64_t all_ns = out.cpu->time_ns;
    const auto part_ns = static_cast<std::int64_t>(static_cast<double>(all_ns) * share);
    out.cpu = CpuTime{part_ns, std::max(part_ns, all_ns - part_ns), "share"};
  }
  return out;
}

std::vector<PhaseRow> PhaseTracker::take_rows(std::int64_t now_ns, bool last) {
  for (auto key = with_fold_.begin(); key != with_fold_.end();) {
    PathState& state = states_[*key];
    if (!last && now_ns < state.fold->due_ns) {
      ++key;
      continue;
    }
    rows_.push_back(fold_row(*key, *state.fold));
    state.fold.reset();
    key = with_fold_.erase(key);
  }
  for (const StateKey key : with_open_) {
    for (auto& [number, instance] : states_[key].open) {
      if (instance.told_open) continue;
      instance.told_open = true;
      rows_.push_back(row(key, instance, true));
    }
  }
  return std::exchange(rows_, {});
}

}  // namespace sphase
