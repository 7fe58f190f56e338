// Source: cli/report_csv.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "collector/report/report_print.h"
#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

/// Fields of a line as RFC 4180 has them.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  return fields;
}

std::vector<std::vector<std::string>> parse(const std::string& text) {
  std::vector<std::vector<std::string>> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(fields_of(line));
  return lines;
}

std::string field(const std::vector<std::vector<std::string>>& lines, std::size_t line,
                  const std::string& column) {
  const auto at = std::find(lines[0].begin(), lines[0].end(), column);
  REQUIRE_MESSAGE(at != lines[0].end(), column);
  return lines[line][static_cast<std::size_t>(at - lines[0].begin())];
}

}  // namespace

TEST_CASE("every line has as many fields as there are columns, whatever a name holds") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {});
  add_samples(cluster.db(), run, 0, 10, 2);
  add_phase(cluster.db(), run, {.path = "a,\"b\"\n=cmd()", .begin_s = 1, .end_s = 3, .cpu_s = 4});
  for (const auto& options :
       {ReportOptions{}, ReportOptions{.instances = true}, ReportOptions{.nodes = true}}) {
    const auto lines = parse(report_csv(cluster.load("123"), options));
    REQUIRE(lines.size() >= 2);
    for (const auto& line : lines) CHECK(line.size() == lines[0].size());
  }
  const auto lines = parse(report_csv(cluster.load("123"), {}));
  CHECK(field(lines, 3, "path") == "a,\"b\"\\x0a=cmd()");
}

TEST_CASE("numbers are whole in their units, and empty where they are not known") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {});
  add_samples(cluster.db(), run, 0, 10, 2);
  add_phase(cluster.db(), run, {.path = "solve", .begin_s = 1, .end_s = 3, .cpu_s = 4});
  const auto lines = parse(report_csv(cluster.load("123"), {}));
  CHECK(field(lines, 3, "kind") == "task phase");
  CHECK(field(lines, 3, "cpu_time_ns") == "4000000000");
  CHECK(field(lines, 3, "efficiency_ratio") == "0.5");
  CHECK(field(lines, 3, "io_write_bytes").empty());
  CHECK(field(lines, 3, "array_job_id").empty());
}

TEST_CASE("nodes have lines of their own, idle ones too") {
  ClusterFixture cluster;
  const JobSpec job;
  add_job(cluster.db(), job);
  add_allocation(cluster.db(), job, {"n1", "n2"}, 0, 10);
  add_samples(cluster.db(), add_run(cluster.db(), {}), 0, 10, 2);
  const auto lines = parse(report_csv(cluster.load("123"), {.nodes = true}));
  REQUIRE(lines.size() == 3);
  CHECK(field(lines, 2, "node") == "n2");
  CHECK(field(lines, 2, "state") == "idle");
  CHECK(field(lines, 2, "wasted_node_s") == "10");
}
