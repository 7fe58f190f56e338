// What a recorder hands to its store: the run itself and the rows of one second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spank/recorder/phases/phase_row.h"
#include "spank/recorder/sources/sampler.h"
#include "spank/recorder_link.h"

namespace sphase {

struct TaskRow {
  std::uint32_t task = 0;
  std::uint32_t global_task = 0;
  int pid = 0;
  std::optional<std::int64_t> start_ns;
  std::optional<std::int64_t> end_ns;
  std::optional<std::int64_t> exit_status;
  std::optional<std::int64_t> cpu_time_ns;
  std::vector<PapiCount> counts;  // of its whole life; only in its last row
};

struct ValueRow {
  std::int64_t time_ns = 0;
  std::uint32_t task = 0;
  std::string path;
  std::string name;
  double value = 0;
};

struct AttributeRow {
  std::uint32_t task = 0;
  std::string path;
  std::string key;
  std::string value;
};

struct NoticeRow {
  std::int64_t time_ns = 0;
  std::string code;
  std::string text;
};

struct Batch {
  std::vector<TaskRow> tasks;
  std::vector<SampleRow> samples;
  std::vector<PhaseRow> phases;
  std::vector<ValueRow> values;
  std::vector<AttributeRow> attributes;
  std::vector<NoticeRow> notices;

  std::size_t size() const {
    return tasks.size() + samples.size() + phases.size() + values.size() + attributes.size() +
           notices.size();
  }
};

/// Columns of table `run` that change while it goes on.
struct RunState {
  std::optional<std::uint32_t> restart_count;  // where it was not known at the start
  std::int64_t last_ns = 0;
  std::optional<std::int64_t> end_ns;
  std::string end_reason;
  Tier cpu, memory, io, counters;
  std::vector<std::string> events;  // names of what PapiCounts count, in their order
  std::int64_t counters_refused = 0;
  std::int64_t markers = 0;
  std::int64_t markers_dropped = 0;
  std::int64_t markers_invalid = 0;
  std::int64_t samples_dropped = 0;
  std::optional<std::int64_t> edge_lag_p50_ns;
  std::optional<std::int64_t> edge_lag_p99_ns;
};

}  // namespace sphase
