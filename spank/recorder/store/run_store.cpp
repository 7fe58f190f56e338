#include "spank/recorder/store/run_store.h"

#include <sys/resource.h>
#include <unistd.h>

#include <iterator>

#include "common/clock.h"
#include "common/note_file.h"
#include "common/vocabulary.h"
#include "spank/recorder/file.h"

namespace sphase {
namespace {

template <typename Row>
void append(std::vector<Row>& all, std::vector<Row>& some) {
  all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  some.clear();
}

/// Numbers that Slurm did not tell become NULL.
std::optional<std::int64_t> known(std::uint64_t number) {
  if (number == SPHASE_LINK_UNKNOWN) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::optional<std::string> known(const char* text) {
  if (text[0] == '\0') return std::nullopt;
  return std::string(text);
}

std::optional<std::string> known(const std::string& text) { return known(text.c_str()); }

std::int64_t own_peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

void bind_sample(Statement& insert, std::int64_t run_id, const SampleRow& row) {
  const auto io = [&](std::int64_t Io::*part) -> std::optional<std::int64_t> {
    if (!row.io) return std::nullopt;
    return (*row.io).*part;
  };
  insert.bind(1, run_id).bind(2, row.time_ns).bind(3, row.kind).bind(4, row.cpu_time_ns);
  insert.bind(5, row.memory.current).bind(6, row.memory.anon).bind(7, row.memory.file);
  insert.bind(8, row.memory.shmem).bind(9, row.memory.kernel).bind(10, row.memory.peak);
  insert.bind(11, io(&Io::read_bytes)).bind(12, io(&Io::write_bytes));
  insert.bind(13, io(&Io::read_call_bytes)).bind(14, io(&Io::write_call_bytes));
  insert.bind(15, row.processes);
}

void bind_phase(Statement& insert, std::int64_t run_id, const PhaseRow& row) {
  insert.bind(1, run_id).bind(2, row.shell ? kScopeShell : kScopeTask).bind(3, row.task);
  insert.bind(4, row.path).bind(5, row.number).bind(6, row.depth).bind(7, row.count);
  insert.bind(8, row.threads).bind(9, row.begin_ns).bind(10, row.end_ns).bind(11, row.wall_ns);
  if (row.cpu) {
    insert.bind(12, row.cpu->time_ns).bind(13, row.cpu->source).bind(14, row.cpu->resolution_ns);
  } else {
    insert.bind_null(12).bind_null(13).bind_null(14);
  }
  insert.bind(15, row.memory_peak_bytes);
  if (row.memory_peak_bytes) {
    insert.bind(16, row.memory_peak_source);
  } else {
    insert.bind_null(16);
  }
  insert.bind(17, row.edge_lag_ns).bind(18, row.flags);
}

constexpr const char* kInsertCounter = "INSERT OR REPLACE INTO counter VALUES (?,?,?,?,?,?,?,?,?)";

/// One row per event of `counts`.
Status insert_counts(Statement& insert, const std::vector<std::string>& events,
                     const std::vector<PapiCount>& counts) {
  for (std::size_t i = 0; i < counts.size() && i < events.size(); ++i) {
    insert.bind(6, events[i]).bind(7, counts[i].value);
    insert.bind(8, counts[i].time_enabled_ns).bind(9, counts[i].time_running_ns);
    if (auto done = insert.run(); !done) return done;
  }
  return Done{};
}

/// About what a batch takes in the file, but for tasks and notices. Paths may have 2.5 kB each.
std::uint64_t bytes_of(const Batch& batch) {
  constexpr std::uint64_t kRowBytes = 128;
  std::uint64_t bytes = kRowBytes * batch.size();
  for (const PhaseRow& row : batch.phases) {
    bytes += row.path.size() * (1 + row.counts.size()) + kRowBytes * row.counts.size();
  }
  for (const ValueRow& row : batch.values) bytes += row.path.size() + row.name.size();
  for (const AttributeRow& row : batch.attributes) {
    bytes += row.path.size() + row.key.size() + row.value.size();
  }
  return bytes;
}

/// Prepares `sql`, binds and runs it for each row.
template <typename Rows, typename Bind>
Status insert_all(Database& db, const char* sql, const Rows& rows, Bind bind) {
  if (rows.empty()) return Done{};
  auto insert = db.prepare(sql);
  if (!insert) return Error{insert.error()};
  for (const auto& row : rows) {
    bind(*insert, row);
    auto done = insert->run();
    if (!done) return done;
  }
  return Done{};
}

}  // namespace

void RunStore::add(Batch&& batch) {
  keep_to_share(batch);
  if (pending_.size() + batch.size() > kMaxPending) {
    samples_dropped_ += static_cast<std::int64_t>(batch.samples.size() + batch.phases.size() +
                                                  batch.values.size() + batch.attributes.size());
    batch.samples.clear();
    batch.phases.clear();
    batch.values.clear();
    batch.attributes.clear();
  }
  append(pending_.tasks, batch.tasks);
  append(pending_.samples, batch.samples);
  append(pending_.phases, batch.phases);
  append(pending_.values, batch.values);
  append(pending_.attributes, batch.attributes);
  if (pending_.notices.size() < 1000) append(pending_.notices, batch.notices);
}

void RunStore::keep_to_share(Batch& batch) {
  const std::uint64_t share = start_.max_bytes / kShareOfCap;
  if (added_bytes_ + bytes_of(batch) <= share) {
    added_bytes_ += bytes_of(batch);
    return;
  }
  const std::size_t before = batch.size();
  std::erase_if(batch.samples,
                [](const SampleRow& row) { return row.kind == std::string("edge"); });
  batch.phases.clear();
  batch.values.clear();
  batch.attributes.clear();
  samples_dropped_ += static_cast<std::int64_t>(before - batch.size());
  if (std::exchange(share_noted_, true)) return;
  batch.notices.push_back({epoch_ns(), std::string(notice::kLimit),
                           "this run has written " + std::to_string(added_bytes_ >> 20) +
                               " MiB, its share of node.db: of the rest only tasks and periodic "
                               "samples are kept"});
}

Status RunStore::open() {
  auto opened = open_node_db(start_.node_db, static_cast<std::int64_t>(start_.max_bytes));
  if (!opened) return Error{opened.error()};
  db_.emplace(std::move(opened->db));
  run_id_.reset();
  sealer_ = Sealer();
  if (!opened->set_aside.empty()) {
    pending_.notices.push_back(
        {epoch_ns(), std::string(notice::kStoreReplaced),
         "node.db could not be used (" + opened->why + ") and was moved to " + opened->set_aside});
  }
  return Done{};
}

Status RunStore::commit(const RunState& state) {
  auto done = commit_rows(state);
  if (done) seal(state);
  return done;
}

/// Rows that cannot be sealed stay as they are, and nothing is lost: not a failure of the commit.
void RunStore::seal(const RunState& state) {
  const auto sealed = sealer_.seal(*db_, {*run_id_, state.end_ns.has_value(), state.last_ns});
  seals_failed_ = sealed ? 0 : seals_failed_ + 1;
  if (seals_failed_ != 3) return;  // a file that is held for a moment is not worth a word
  pending_.notices.push_back({epoch_ns(), std::string(notice::kStoreFailed),
                              "older rows take more space than they should, since they could not "
                              "be sealed: " +
                                  sealed.error()});
}

Status RunStore::commit_rows(const RunState& state) {
  if (state.restart_count) start_.restart_count = *state.restart_count;
  if (db_ && was_moved(*db_)) db_.reset();  // by another recorder, or deleted
  if (!db_) {
    auto opened = open();
    if (!opened) return opened;
  }
  auto done = try_commit(state);
  if (done) return done;
  if (failed_code_ == SQLITE_FULL) return make_room(state, std::move(done));
  if (failed_code_ != SQLITE_CORRUPT && failed_code_ != SQLITE_NOTADB) return done;
  return replace_damaged(state);
}

/// Damaged while we had it open: its rows stay in the file that is set aside.
Status RunStore::replace_damaged(const RunState& state) {
  auto aside = set_aside_damaged(*db_, start_.node_db);
  if (!aside) return Error{aside.error()};
  if (!aside->empty()) {
    pending_.notices.push_back(
        {epoch_ns(), std::string(notice::kStoreReplaced),
         "node.db was damaged while it was in use and was moved to " + *aside});
  }
  db_.reset();
  auto opened = open();
  if (!opened) return opened;
  return try_commit(state);
}

/// The file is at its cap, or the disk is full: old runs go first, then this batch's samples.
Status RunStore::make_room(const RunState& state, Status failed) {
  for (int attempt = 0; attempt < 32; ++attempt) {
    auto dropped = drop_oldest(*db_, std::to_string(start_.start_ns));
    if (!dropped || !*dropped) break;
    failed = try_commit(state);
    if (failed || failed_code_ != SQLITE_FULL) return failed;
  }
  samples_dropped_ += static_cast<std::int64_t>(pending_.samples.size());
  pending_.samples.clear();
  return try_commit(state);
}

Status RunStore::try_commit(const RunState& state) {
  const auto keep_code = [&] { failed_code_ = sqlite3_extended_errcode(db_->raw()) & 0xff; };
  auto transaction = Transaction::begin(*db_);
  if (!transaction) {
    keep_code();
    return Error{transaction.error()};
  }
  const auto run_before = run_id_;
  const auto undo = [&](Status failed) {
    keep_code();
    run_id_ = run_before;
    imported_notes_.clear();
    return failed;
  };
  auto done = write_run(state);
  if (!done) return undo(std::move(done));
  done = write_rows();
  if (done) done = write_counts(state.events);
  if (!done) return undo(std::move(done));
  if (!run_before) {
    done = import_notes();
    if (!done) return undo(std::move(done));
  }
  done = transaction->commit();
  if (!done) return undo(std::move(done));
  sealer_.wrote(pending_);
  pending_ = Batch{};
  for (const std::string& path : imported_notes_) unlink(path.c_str());
  imported_notes_.clear();
  return Done{};
}

Status RunStore::insert_run() {
  auto insert = db_->prepare(
      "INSERT INTO run (cluster, job_id, restart_count, start_ns, step, node, array_job_id,"
      " array_task_id, het_job_id, het_offset, uid, job_name, partition, account, node_index,"
      " step_nodes, step_tasks, node_tasks, job_cpus, step_cpus, job_memory_bytes,"
      " step_memory_bytes, options, profile, period_ns, tick_ns, sphase_version, slurm_version,"
      " boot_id, recorder_pid)"
      " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  if (!insert) return Error{insert.error()};
  std::string boot_id = read_file("/proc/sys/kernel/random/boot_id").value_or("");
  while (!boot_id.empty() && boot_id.back() == '\n') boot_id.pop_back();
  insert->bind(1, start_.cluster).bind(2, start_.job_id).bind(3, start_.restart_count);
  insert->bind(4, static_cast<std::int64_t>(start_.start_ns)).bind(5, start_.step);
  insert->bind(6, start_.node).bind(7, known(start_.array_job_id));
  insert->bind(8, known(start_.array_task_id)).bind(9, known(start_.het_job_id));
  insert->bind(10, known(start_.het_offset)).bind(11, start_.uid).bind(12, known(start_.job_name));
  insert->bind(13, known(start_.partition)).bind(14, known(start_.account));
  insert->bind(15, known(start_.node_index)).bind(16, known(start_.step_nodes));
  insert->bind(17, known(start_.step_tasks)).bind(18, known(start_.node_tasks));
  insert->bind(19, known(start_.job_cpus)).bind(20, known(start_.step_cpus));
  insert->bind(21, known(start_.job_memory_bytes)).bind(22, known(start_.step_memory_bytes));
  insert->bind(23, start_.options).bind(24, known(start_.profile));
  insert->bind(25, static_cast<std::int64_t>(start_.period_ns)).bind(26, tick_ns());
  insert->bind(27, SPHASE_VERSION).bind(28, known(start_.slurm_version));
  insert->bind(29, known(boot_id)).bind(30, static_cast<std::int64_t>(getpid()));
  auto done = insert->run();
  if (done) run_id_ = db_->last_rowid();
  return done;
}

Status RunStore::write_run(const RunState& state) {
  if (!run_id_) {
    auto inserted = insert_run();
    if (!inserted) return inserted;
  }
  auto update = db_->prepare(
      "UPDATE run SET last_ns=?, end_ns=?, end_reason=?, cpu_source=?, cpu_reason=?,"
      " memory_source=?, memory_reason=?, io_source=?, io_reason=?, markers=?, markers_dropped=?,"
      " markers_invalid=?, samples_dropped=?, edge_lag_p50_ns=?, edge_lag_p99_ns=?,"
      " recorder_cpu_ns=?, recorder_rss_bytes=?, restart_count=?, counter_source=?,"
      " counter_reason=?, counter_refused=? WHERE run_id=?");
  if (!update) return Error{update.error()};
  update->bind(1, state.last_ns).bind(2, state.end_ns).bind(3, known(state.end_reason));
  update->bind(4, known(state.cpu.source)).bind(5, known(state.cpu.reason));
  update->bind(6, known(state.memory.source)).bind(7, known(state.memory.reason));
  update->bind(8, known(state.io.source)).bind(9, known(state.io.reason));
  update->bind(10, state.markers).bind(11, state.markers_dropped).bind(12, state.markers_invalid);
  update->bind(13, state.samples_dropped + samples_dropped_);
  update->bind(14, state.edge_lag_p50_ns).bind(15, state.edge_lag_p99_ns);
  update->bind(16, clock_ns(CLOCK_PROCESS_CPUTIME_ID)).bind(17, own_peak_bytes());
  update->bind(18, start_.restart_count).bind(19, known(state.counters.source));
  update->bind(20, known(state.counters.reason)).bind(21, state.counters_refused);
  update->bind(22, *run_id_);
  auto done = update->run();
  return done ? note_change(*db_, *run_id_) : done;
}

Status RunStore::write_rows() {
  const std::int64_t run = *run_id_;
  auto done =
      insert_all(*db_, "INSERT OR REPLACE INTO task VALUES (?,?,?,?,?,?,?,?)", pending_.tasks,
                 [&](Statement& insert, const TaskRow& row) {
                   std::optional<std::int64_t> global;
                   if (row.global_task != UINT32_MAX) global = row.global_task;
                   insert.bind(1, run).bind(2, row.task).bind(3, global).bind(4, row.pid);
                   insert.bind(5, row.start_ns).bind(6, row.end_ns).bind(7, row.exit_status);
                   insert.bind(8, row.cpu_time_ns);
                 });
  if (!done) return done;
  done = insert_all(
      *db_, "INSERT OR IGNORE INTO sample VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", pending_.samples,
      [&](Statement& insert, const SampleRow& row) { bind_sample(insert, run, row); });
  if (!done) return done;
  done =
      insert_all(*db_, "INSERT OR REPLACE INTO phase VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                 pending_.phases,
                 [&](Statement& insert, const PhaseRow& row) { bind_phase(insert, run, row); });
  if (!done) return done;
  done = insert_all(*db_, "INSERT OR IGNORE INTO value VALUES (?,?,?,?,?,?)", pending_.values,
                    [&](Statement& insert, const ValueRow& row) {
                      insert.bind(1, run).bind(2, row.time_ns).bind(3, row.task).bind(4, row.path);
                      insert.bind(5, row.name).bind(6, row.value);
                    });
  if (!done) return done;
  done = insert_all(*db_, "INSERT OR REPLACE INTO attribute VALUES (?,?,?,?,?)",
                    pending_.attributes, [&](Statement& insert, const AttributeRow& row) {
                      insert.bind(1, run).bind(2, row.task).bind(3, row.path);
                      insert.bind(4, row.key).bind(5, row.value);
                    });
  if (!done) return done;
  return insert_all(*db_, "INSERT OR IGNORE INTO notice VALUES (?,?,?,?,?,?,?,?,?)",
                    pending_.notices, [&](Statement& insert, const NoticeRow& row) {
                      insert.bind(1, run).bind(2, start_.cluster).bind(3, start_.job_id);
                      insert.bind(4, start_.restart_count).bind(5, start_.step);
                      insert.bind(6, start_.node).bind(7, row.time_ns);
                      insert.bind(8, row.code).bind(9, row.text);
                    });
}

/// Rows of the whole task have path '' and number 0; see common/schema/counter.sql.
Status RunStore::write_counts(const std::vector<std::string>& events) {
  if (events.empty()) return Done{};
  auto insert = db_->prepare(kInsertCounter);
  if (!insert) return Error{insert.error()};
  insert->bind(1, *run_id_);
  for (const TaskRow& row : pending_.tasks) {
    insert->bind(2, kScopeTask).bind(3, row.task).bind(4, "").bind(5, 0);
    if (auto done = insert_counts(*insert, events, row.counts); !done) return done;
  }
  for (const PhaseRow& row : pending_.phases) {
    insert->bind(2, row.shell ? kScopeShell : kScopeTask).bind(3, row.task);
    insert->bind(4, row.path).bind(5, row.number);
    if (auto done = insert_counts(*insert, events, row.counts); !done) return done;
  }
  return Done{};
}

/// Notes that earlier steps on this node had to leave beside the database come into it.
Status RunStore::import_notes() {
  constexpr std::size_t kMost = 100;
  std::vector<NoteFile> notes;
  for (NoteFile& note : read_notes(std::string(start_.run_dir) + "/notes")) {
    if (note.node == start_.node && notes.size() < kMost) notes.push_back(std::move(note));
  }
  for (const NoteFile& note : notes) imported_notes_.push_back(note.path);
  return insert_all(*db_, "INSERT OR IGNORE INTO notice VALUES (NULL,?,?,?,?,?,?,?,?)", notes,
                    [&](Statement& insert, const NoteFile& note) {
                      insert.bind(1, note.cluster).bind(2, note.job_id);
                      insert.bind(3, note.restart_count).bind(4, note.step).bind(5, note.node);
                      insert.bind(6, note.time_ns).bind(7, note.code).bind(8, note.text);
                    });
}

}  // namespace sphase
