// Which rows are intervals of one start, and which starts are of one submission: see records.h.
#include <algorithm>
#include <map>
#include <tuple>

#include "collector/records/records.h"

namespace sphase {
namespace {

constexpr std::int64_t kSlackS = 2;
constexpr std::int64_t kSecond = 1'000'000'000;

using Rows = std::vector<const JobRow*>;

/// When this row's nodes were its own: a row that follows a resize keeps the job's start, and has
/// the time of the resize as its submit time.
std::int64_t interval_begin(const JobRow& row) {
  return std::max(row.facts.start_s.value_or(0), row.facts.submit_s.value_or(0));
}

/// `live`: what slurmctld shows, nullptr: nothing. Where slurmdbd was away during the resize it may
/// hear of the new interval before it hears of the old one's end.
bool is_resize(const JobRow& before, const JobRow& after, const JobRow* live) {
  Maybe resized_s;
  if (before.facts.state == "RESIZING") resized_s = before.facts.end_s;
  const bool still_open = before.facts.start_s && !before.facts.end_s;
  if (still_open && live != nullptr) resized_s = live->resize_s;
  return resized_s && std::abs(after.facts.submit_s.value_or(0) - *resized_s) <= kSlackS;
}

/// A job that runs again, rather than another one with the same number.
bool is_requeue(const JobRow& before, const JobRow& after) {
  const bool same = before.facts.uid == after.facts.uid && before.facts.name == after.facts.name &&
                    before.facts.array_task_id == after.facts.array_task_id;
  if (!same) return false;
  const std::string state = before.facts.state.value_or("");
  if (state == "REQUEUED") return true;
  // These requeue by themselves; a completed job does so at `scontrol requeue`, within the time
  // that slurmctld remembers it, and then has slurmctld or a witness to say so.
  return state == "NODE_FAIL" || state == "PREEMPTED" || state == "BOOT_FAIL";
}

/// Rows of one start, in order.
using StartRows = Rows;

struct Chain {
  std::vector<StartRows> starts;  // of one submission
  std::int64_t first_restart = 0;
};

std::vector<StartRows> split_starts(Rows rows, const JobRow* live) {
  std::sort(rows.begin(), rows.end(), [](const JobRow* a, const JobRow* b) {
    // What ended in a resize comes before what it became, also within one second.
    const auto key = [](const JobRow& row) {
      return std::tuple(row.facts.submit_s, row.facts.start_s, row.facts.state != "RESIZING");
    };
    return key(*a) < key(*b);
  });
  std::vector<StartRows> starts;
  for (const JobRow* row : rows) {
    if (!starts.empty() && is_resize(*starts.back().back(), *row, live)) {
      starts.back().push_back(row);
    } else {
      starts.push_back({row});
    }
  }
  return starts;
}

std::int64_t begin_of(const StartRows& start) { return interval_begin(*start.front()); }

bool covers(const StartRows& start, std::int64_t time_s) {
  const auto& end = start.back()->facts.end_s;
  return start.front()->facts.start_s && time_s >= begin_of(start) - kSlackS &&
         (!end || time_s <= *end + kSlackS);
}

/// The start that slurmctld shows: by the time at which it began or, where it waits, was submitted.
/// A start that ended a moment before is another one.
bool is_live(const StartRows& start, const JobRow& live) {
  const JobFacts& first = start.front()->facts;
  if (first.start_s && live.facts.start_s) return first.start_s == live.facts.start_s;
  return first.submit_s == live.facts.submit_s;
}

/// What a run, or slurmctld, says about the restart count of a start.
Maybe told_restart(const StartRows& start, const std::vector<const Witness*>& witnesses,
                   const JobRow* live) {
  if (live != nullptr && live->restarts && is_live(start, *live)) return live->restarts;
  for (const Witness* witness : witnesses) {
    if (covers(start, witness->begin_s)) return witness->restart_count;
  }
  return std::nullopt;
}

std::vector<Chain> split_chains(const std::vector<StartRows>& starts,
                                const std::vector<const Witness*>& witnesses, const JobRow* live) {
  std::vector<Chain> chains;
  for (const auto& start : starts) {
    const Maybe told = told_restart(start, witnesses, live);
    bool again = !chains.empty() && is_requeue(*chains.back().starts.back().back(), *start.front());
    if (told && !chains.empty()) {
      const auto expected =
          chains.back().first_restart + static_cast<std::int64_t>(chains.back().starts.size());
      again = *told > 0 && (again || *told == expected);
    }
    if (!again) chains.emplace_back();
    Chain& chain = chains.back();
    if (told) chain.first_restart = *told - static_cast<std::int64_t>(chain.starts.size());
    chain.starts.push_back(start);
  }
  for (auto& chain : chains) chain.first_restart = std::max<std::int64_t>(0, chain.first_restart);
  return chains;
}

/// Facts that only one of the daemons knows, or only one row. Not how it ended: that is what the
/// later word says, or does not say yet.
void fill(JobFacts& into, const JobFacts& from) {
  for (Maybe JobFacts::*number :
       {&JobFacts::array_job_id, &JobFacts::array_task_id, &JobFacts::het_job_id,
        &JobFacts::het_offset, &JobFacts::uid, &JobFacts::eligible_s, &JobFacts::start_s,
        &JobFacts::time_limit_s, &JobFacts::suspended_s, &JobFacts::requested_nodes,
        &JobFacts::requested_cpus, &JobFacts::requested_time_limit_s, &JobFacts::helper_of}) {
    if (!(into.*number)) into.*number = from.*number;
  }
  for (MaybeText JobFacts::*text :
       {&JobFacts::user, &JobFacts::account, &JobFacts::name, &JobFacts::partition, &JobFacts::qos,
        &JobFacts::state, &JobFacts::state_reason, &JobFacts::requested_memory,
        &JobFacts::admin_comment}) {
    if (!(into.*text) || (into.*text)->empty()) into.*text = from.*text;
  }
}

HeldAllocation allocation_of(const JobRow& row) {
  HeldAllocation allocation;
  allocation.begin_ns = interval_begin(row) * kSecond;
  if (row.facts.end_s) allocation.end_ns = *row.facts.end_s * kSecond;
  allocation.state = row.facts.state;
  allocation.expression = row.nodes;
  allocation.node_count = row.node_count;
  allocation.cpus = row.cpus;
  allocation.memory_bytes = row.memory_bytes;
  allocation.nodes = row.each_node;
  allocation.tres = row.tres;
  return allocation;
}

void add_allocation(JobRecord& record, const JobRow& row) {
  if (!row.facts.start_s || row.nodes.empty()) return;  // not started, or it holds nothing
  record.allocations.push_back(allocation_of(row));
}

/// slurmdbd counts anew in each row.
Maybe suspended_in(const StartRows& start) {
  Maybe sum;
  for (const JobRow* row : start) {
    if (row->facts.suspended_s) sum = sum.value_or(0) + *row->facts.suspended_s;
  }
  return sum;
}

JobRecord record_of(const StartRows& start) {
  // The last row knows how it went, the first one what was asked for before any resize.
  const JobFacts& first = start.front()->facts;
  JobRecord record{start.back()->facts, first.submit_s, {}, {}, {}};
  record.facts.submit_s = first.submit_s;
  record.facts.eligible_s = first.eligible_s;
  record.facts.start_s = first.start_s;
  record.facts.requested_nodes = first.requested_nodes;
  record.facts.requested_cpus = first.requested_cpus;
  record.facts.requested_memory = first.requested_memory;
  record.facts.requested_time_limit_s = first.requested_time_limit_s;
  record.facts.suspended_s = suspended_in(start);
  record.facts.source = "slurmdbd";
  fill(record.facts, first);
  for (const JobRow* row : start) add_allocation(record, *row);
  for (auto& allocation : record.allocations) allocation.settled = allocation.end_ns.has_value();
  return record;
}

/// slurmctld's word on what is held now: slurmdbd hears of it a moment later.
void join_allocation(JobRecord& record, const JobRow& live) {
  if (!live.facts.start_s || live.nodes.empty()) return;
  HeldAllocation now = allocation_of(live);
  now.begin_ns = std::max(*live.facts.start_s, live.resize_s.value_or(0)) * kSecond;
  if (!record.allocations.empty()) {
    HeldAllocation& last = record.allocations.back();
    const std::int64_t later = now.begin_ns - last.begin_ns;
    if (later <= kSlackS * kSecond) {
      now.begin_ns = last.begin_ns;
      now.settled = last.settled;
      last = std::move(now);
      return;
    }
    if (!last.end_ns) last.end_ns = now.begin_ns;
    last.state = "RESIZING";
  }
  record.allocations.push_back(std::move(now));
}

/// slurmctld's view of a start that slurmdbd keeps: fresher, and it knows CPUs per node.
void join_live(JobRecord& record, const JobRow& live) {
  JobFacts facts = live.facts;
  facts.submit_s = record.facts.submit_s;
  facts.restart_count = record.facts.restart_count;
  // What was asked for before any resize, where slurmdbd has it.
  const JobFacts& first = record.facts;
  if (first.requested_nodes) facts.requested_nodes = first.requested_nodes;
  if (first.requested_cpus) facts.requested_cpus = first.requested_cpus;
  if (first.requested_memory) facts.requested_memory = first.requested_memory;
  fill(facts, record.facts);
  facts.source = "slurmctld+slurmdbd";
  record.facts = facts;
  record.suspend_s = live.suspend_s;
  record.ran_s = live.ran_s;
  join_allocation(record, live);
}

/// A start that slurmctld alone knows. After a resize the time before is an allocation of which
/// only the length is known.
JobRecord live_record(const JobRow& live) {
  JobRecord record{live.facts, live.facts.submit_s, {}, live.suspend_s, live.ran_s};
  record.facts.restart_count = live.restarts.value_or(0);
  record.facts.source = "slurmctld";
  const Maybe start = live.facts.start_s;
  const bool resized = start && live.resize_s && *live.resize_s > *start;
  if (resized) {
    HeldAllocation before;
    before.begin_ns = *start * kSecond;
    before.end_ns = *live.resize_s * kSecond;
    before.state = "RESIZING";
    record.allocations.push_back(before);
  }
  add_allocation(record, live);
  if (resized && record.allocations.size() > 1) {
    record.allocations.back().begin_ns = *live.resize_s * kSecond;
  }
  return record;
}

/// The start of these that slurmctld shows now.
JobRecord* find_live(std::vector<JobRecord>& records, std::size_t from, const JobRow& live) {
  for (std::size_t i = records.size(); i-- > from;) {
    JobRecord& record = records[i];
    const bool same_start = record.facts.start_s == live.facts.start_s;
    const bool same_submit = record.shown_submit_s == live.facts.submit_s;
    if (same_start && (live.facts.start_s || same_submit)) return &record;
  }
  return nullptr;
}

using Key = std::pair<std::string, std::int64_t>;
Key key_of(const JobFacts& facts) { return {facts.cluster, facts.job_id}; }

}  // namespace

std::vector<JobRecord> assemble_records(const std::vector<JobRow>& slurmctld,
                                        const std::vector<JobRow>& slurmdbd,
                                        const std::vector<Witness>& witnesses) {
  std::map<Key, Rows> kept;
  for (const auto& row : slurmdbd) kept[key_of(row.facts)].push_back(&row);
  std::map<Key, const JobRow*> live;
  for (const auto& row : slurmctld) {
    live[key_of(row.facts)] = &row;
    kept.try_emplace(key_of(row.facts));
  }
  std::map<Key, std::vector<const Witness*>> told;
  for (const auto& witness : witnesses) told[{witness.cluster, witness.job_id}].push_back(&witness);

  std::vector<JobRecord> records;
  for (auto& [key, rows] : kept) {
    const auto shown = live.find(key);
    const JobRow* now = shown == live.end() ? nullptr : shown->second;
    const std::size_t from = records.size();
    for (const auto& chain : split_chains(split_starts(rows, now), told[key], now)) {
      for (std::size_t i = 0; i < chain.starts.size(); ++i) {
        JobRecord record = record_of(chain.starts[i]);
        record.facts.restart_count = chain.first_restart + static_cast<std::int64_t>(i);
        record.facts.submit_s = chain.starts.front().front()->facts.submit_s;
        records.push_back(std::move(record));
      }
    }
    if (now == nullptr) continue;
    if (JobRecord* record = find_live(records, from, *now)) {
      join_live(*record, *now);
    } else {
      records.push_back(live_record(*now));
    }
  }
  return records;
}

}  // namespace sphase
