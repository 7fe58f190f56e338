// Printers of a Timeline: text, JSON, CSV. All of them read that value and nothing else.
#pragma once

#include <string>
#include <vector>

#include "collector/timeline/timeline.h"

namespace sphase {

struct ReportOptions {
  bool instances = false;  // a row per instance
  bool nodes = false;      // every node, also where there are many
};

/// For people: at most 100 columns, no colour.
std::string report_text(const std::vector<Timeline>& starts, const ReportOptions& options);

/// {"starts": [{"job": …, "allocations": …, "rows": …, "nodes": …, "missing": …}]}; units are in
/// the names, null = not known.
std::string report_json(const std::vector<Timeline>& starts, const ReportOptions& options);

/// One line per row of the phase table (or, with `nodes`, per node), all starts one after another.
std::string report_csv(const std::vector<Timeline>& starts, const ReportOptions& options);

/// "123", "123_4", "123+1"
std::string job_label(const JobFacts& job);

/// "COMPLETED", "FAILED, exit code 3", "CANCELLED, signal 15"
std::string state_label(const JobFacts& job);

}  // namespace sphase
