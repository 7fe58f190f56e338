// A shipment with something in each table, as a node would send it.
#pragma once

#include <string>
#include <vector>

#include "collector/ingest/shipment.h"

namespace sphase::testing {

inline SegmentColumn repeated(const std::string& name, std::int64_t first, std::size_t rows,
                              std::int64_t step = 0) {
  SegmentColumn made(name);
  for (std::size_t row = 0; row < rows; ++row) {
    (void)made.add(first + static_cast<std::int64_t>(row) * step);
  }
  return made;
}

inline SegmentColumn repeated(const std::string& name, std::string_view text, std::size_t rows) {
  SegmentColumn made(name);
  for (std::size_t row = 0; row < rows; ++row) (void)made.add(text);
  return made;
}

inline Segment some_samples(std::int64_t first_ns) {
  return {{repeated("time_ns", first_ns, 3, 1000), repeated("kind", "tick", 3),
           repeated("cpu_time_ns", 0, 3, 500)}};
}

inline Segment some_phases(std::int64_t first) {
  return {{repeated("scope", "task", 2), repeated("task", 0, 2), repeated("path", "a/b", 2),
           repeated("number", first, 2, 1), repeated("depth", 1, 2), repeated("count", 1, 2),
           repeated("threads", 1, 2), repeated("begin_ns", 2000, 2), repeated("end_ns", 4000, 2),
           repeated("flags", 0, 2)}};
}

inline RawRows of_first_run(const std::string& table, Segment rows) {
  rows.columns.insert(rows.columns.begin(), repeated("run", 0, rows.rows()));
  return {table, std::move(rows)};
}

/// Two runs; of the first one a row or more in each table, and segments that encode_segment made.
inline Shipment some_real_shipment() {
  Shipment shipment;
  shipment.runs = {{repeated("cluster", "c", 2), repeated("job_id", 1, 2, 1),
                    repeated("restart_count", 0, 2), repeated("start_ns", 1000, 2),
                    repeated("step", "0", 2), repeated("node", "n1", 2), repeated("uid", 5, 2),
                    repeated("period_ns", 1, 2), repeated("sphase_version", "0", 2),
                    repeated("last_ns", 9000, 2)}};
  shipment.raw.push_back(of_first_run("sample", some_samples(7000)));
  shipment.raw.push_back(of_first_run("phase", some_phases(3)));
  shipment.raw.push_back(of_first_run(
      "value", {{repeated("time_ns", 5, 1), repeated("task", 0, 1), repeated("path", "", 1),
                 repeated("name", "v", 1), repeated("value", 2, 1)}}));
  shipment.raw.push_back(of_first_run(
      "notice",
      {{repeated("cluster", "c", 1), repeated("job_id", 1, 1), repeated("restart_count", 0, 1),
        repeated("step", "0", 1), repeated("node", "n1", 1), repeated("time_ns", 5, 1),
        repeated("code", "x", 1), repeated("text", "y", 1)}}));
  shipment.sealed.push_back({0, 0, 11, *encode_segment(some_samples(1000))});
  shipment.sealed.push_back({0, 1, 12, *encode_segment(some_phases(1))});
  return shipment;
}

}  // namespace sphase::testing
