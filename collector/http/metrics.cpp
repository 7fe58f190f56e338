#include "collector/http/metrics.h"

#include <fmt/format.h>
#include <sys/stat.h>

namespace sphase {
namespace {

constexpr std::int64_t kSilentNs = 90'000'000'000;

std::int64_t bytes_of(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? facts.st_size : 0;
}

Result<std::int64_t> number(Database& db, std::string_view sql) {
  auto row = db.prepare(sql);
  if (!row) return Error{row.error()};
  if (row->step()) return row->integer(0);
  return Error{row->status() ? "no answer" : row->status().error()};
}

std::string gauge(std::string_view name, std::string_view unit, std::string_view help,
                  std::int64_t value) {
  const std::string unit_line = unit.empty() ? "" : fmt::format("# UNIT {} {}\n", name, unit);
  return fmt::format("# TYPE {0} gauge\n{1}# HELP {0} {2}\n{0} {3}\n", name, unit_line, help,
                     value);
}

std::string counter(std::string_view name, std::string_view help, std::int64_t value) {
  return fmt::format("# TYPE {0} counter\n# HELP {0} {1}\n{0}_total {2}\n", name, help, value);
}

}  // namespace

Result<Metrics> load_metrics(Database& db, const std::string& path, std::int64_t now_ns) {
  Metrics metrics;
  const std::string silent =
      "SELECT count(*) FROM (SELECT max(seen_ns) AS seen FROM shipper GROUP BY node) WHERE seen "
      "< " +
      std::to_string(now_ns - kSilentNs);
  const std::pair<std::int64_t*, std::string_view> numbers[] = {
      {&metrics.nodes_known, "SELECT count(DISTINCT node) FROM shipper"},
      {&metrics.nodes_silent, silent},
      {&metrics.rows_deleted, "SELECT coalesce(sum(rows_deleted), 0) FROM shipper"},
      {&metrics.jobs_known,
       "SELECT (SELECT count(*) FROM (SELECT 1 FROM job GROUP BY cluster, job_id)) +"
       " (SELECT count(*) FROM (SELECT cluster, job_id FROM run GROUP BY cluster, job_id) AS r "
       "WHERE"
       " NOT EXISTS (SELECT 1 FROM job WHERE job.cluster = r.cluster AND job.job_id = r.job_id))"},
      {&metrics.jobs_running,
       "SELECT count(*) FROM open_job WHERE EXISTS (SELECT 1 FROM job WHERE job.cluster ="
       " open_job.cluster AND job.job_id = open_job.job_id AND state = 'RUNNING')"},
  };
  for (const auto& [value, sql] : numbers) {
    auto found = number(db, sql);
    if (!found) return Error{found.error()};
    *value = *found;
  }
  metrics.database_bytes = bytes_of(path) + bytes_of(path + "-wal");
  return metrics;
}

std::string metrics_text(const Metrics& metrics) {
  return gauge("sphase_nodes", "", "Nodes that have ever shipped.", metrics.nodes_known) +
         gauge("sphase_nodes_silent", "", "Nodes that said nothing for more than 90 s.",
               metrics.nodes_silent) +
         counter("sphase_node_rows_deleted", "Rows that nodes gave up at their size limit.",
                 metrics.rows_deleted) +
         gauge("sphase_jobs", "", "Jobs that something is known of.", metrics.jobs_known) +
         gauge("sphase_jobs_running", "", "Jobs that ran when slurmctld was last asked.",
               metrics.jobs_running) +
         gauge("sphase_database_bytes", "bytes", "Size of cluster.db and its log.",
               metrics.database_bytes) +
         gauge("sphase_web_sessions", "", "Sessions of users of the web page.", metrics.sessions) +
         counter("sphase_http_requests", "HTTP requests answered.", metrics.requests) + "# EOF\n";
}

}  // namespace sphase
