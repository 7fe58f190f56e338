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

/// {"starts": [{"job": …, "allocations": …, "rows": …, "nodes": …, "runs": …, "missing": …}]};
/// units are in the names, null = not known.
std::string report_json(const std::vector<Timeline>& starts, const ReportOptions& options);

/// One line per row of the phase table (or, with `nodes`, per node), all starts one after another.
std::string report_csv(const std::vector<Timeline>& starts, const ReportOptions& options);

/// What PAPI counted, with its legend; "" where it counted nothing.
std::string event_table(const std::vector<UsageRow>& rows);

/// "    solve #2": indented by its level.
std::string phase_name(const UsageRow& row);

/// "123", "123_4", "123+1"
std::string job_label(const JobFacts& job);

/// "COMPLETED", "FAILED, exit code 3", "CANCELLED, signal 15"
std::string state_label(const JobFacts& job);

}  // namespace sphase
