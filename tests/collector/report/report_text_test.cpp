// Source: cli/report_text.cpp.
#include <doctest/doctest.h>

#include <sstream>

#include "collector/report/format.h"
#include "collector/report/report_print.h"
#include "collector/report/table.h"
#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string report(ClusterFixture& cluster, const ReportOptions& options = {},
                   const std::string& job = "123") {
  return report_text(cluster.load(job), options);
}

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, width(line));
  return longest;
}

std::string line_with(const std::string& text, const std::string& part) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (has(line, part)) return line;
  }
  return "";
}

/// As it was before lines were broken.
std::string unwrapped(const std::string& text) {
  std::istringstream words(text);
  std::string out;
  for (std::string word; words >> word;) out += word + ' ';
  return out;
}

/// A job of two nodes, one idle, with a job phase, a step and a phase that ran twice.
void typical(ClusterFixture& cluster) {
  const JobSpec job{.end_s = 20};
  add_job(cluster.db(), job);
  add_allocation(cluster.db(), job, {"n1", "n2"}, 0, 20);
  const auto batch = add_run(cluster.db(), {.end_s = 20, .step = "batch"});
  add_samples(cluster.db(), batch, 0, 20, 0.01, 10 * kMiB);
  add_phase(cluster.db(), batch,
            {.path = "main", .begin_s = 2, .end_s = 18, .cpu_s = 0.1, .scope = "shell"});
  const auto run = add_run(cluster.db(), {.begin_s = 3, .end_s = 17});
  add_samples(cluster.db(), run, 3, 17, 2, 500 * kMiB);
  for (int i = 0; i < 2; ++i) {
    add_phase(cluster.db(), run,
              {.path = "solve",
               .begin_s = 4.0 + 6 * i,
               .end_s = 8.0 + 6 * i,
               .cpu_s = 8,
               .number = i + 1,
               .memory_peak_bytes = 500 * kMiB});
  }
}

}  // namespace

TEST_CASE("the head says who, what, when, what was asked for and what was held") {
  ClusterFixture cluster;
  typical(cluster);
  const std::string text = report(cluster);
  CHECK(
      text.starts_with("Job 123 \"solver\" of alice, account acct, partition debug, cluster c1\n"));
  CHECK(has(text, "COMPLETED; submitted "));
  CHECK(has(text, "(at once)"));
  CHECK(has(text, "(20 s)"));
  CHECK(has(text, "requested  2 nodes, 8 CPUs\n"));
  CHECK(has(text, "allocated  n[1-2] (2 nodes), 8 CPUs, 2.0 GiB\n"));
  CHECK(has(text, "counters   CPU from cgroup1 cpuacct, memory from cgroup1 memory"));
}

TEST_CASE("phases stand indented in what holds them, with their numbers") {
  ClusterFixture cluster;
  typical(cluster);
  const std::string text = report(cluster);
  CHECK(has(text, "\n  main "));
  CHECK(has(text, "\n    step 0 "));
  const std::string solve = line_with(text, "      solve ");
  CHECK(has(solve, " 2 "));     // instances
  CHECK(has(solve, " 8 s "));   // time
  CHECK(has(solve, " 50 % "));  // 2 of 4 CPUs
  CHECK(has(solve, " 500 MiB "));
  INFO(solve);
  CHECK(has(solve, "  4  "));  // wasted: half of 8 s on one node
  CHECK(has(text, "more than once"));
  CHECK(line_with(text, "(outside)").size() > 20);
}

TEST_CASE("an idle node is a row and its time is wasted") {
  ClusterFixture cluster;
  typical(cluster);
  const std::string text = report(cluster);
  CHECK(has(line_with(text, "n2 "), "idle"));
  CHECK(has(line_with(text, "n2 "), " 20 "));
  CHECK(has(text, "idle: allocated, but no process of the job was seen there"));
  CHECK(has(text, " of 40 allocated node-seconds were not used"));
}

TEST_CASE("a row for each instance can be asked for") {
  ClusterFixture cluster;
  typical(cluster);
  const std::string text = report(cluster, {.instances = true});
  CHECK(has(text, "      solve "));
  CHECK(has(text, "      solve #2 "));
  CHECK_FALSE(has(text, "more than once"));
}

TEST_CASE("nothing that came out of a job reaches the terminal as it is") {
  ClusterFixture cluster;
  const std::string evil = "\x1b]0;owned\x07\x1b[31m\nfake line\r\xff";
  const auto run = add_run(cluster.db(), {.node = "n\x1b[1m",
                                          .job_name = evil,
                                          .cpu_source = evil,
                                          .io_source = {},
                                          .io_reason = evil});
  add_phase(cluster.db(), run, {.path = evil, .begin_s = 1, .end_s = 2, .flags = kUnclosed});
  add_notice(cluster.db(), "n1", "limit", evil, "0");
  auto insert = cluster.db().prepare("INSERT INTO attribute VALUES(?,0,'',?,?)");
  REQUIRE(insert->bind(1, run).bind(2, evil).bind(3, evil).run());
  for (const std::string& text : {report(cluster), report(cluster, {.instances = true})}) {
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      REQUIRE((byte >= 0x20 || c == '\n'));
      REQUIRE(byte != 0x7f);
    }
    CHECK(has(text, "\\x1b]0;owned\\x07"));
    CHECK_FALSE(has(text, "\nfake line"));
  }
}

TEST_CASE("no line is longer than 100 columns, whatever the names and however large the numbers") {
  ClusterFixture cluster;
  const JobSpec job{.end_s = 900000};
  add_job(cluster.db(), job);
  std::vector<std::string> nodes;
  nodes.reserve(20);
  for (int i = 0; i < 20; ++i) nodes.push_back("a-node-with-a-long-name-" + std::to_string(i * 7));
  add_allocation(cluster.db(), job, nodes, 0, 900000);
  const auto run = add_run(
      cluster.db(),
      {.end_s = 899999, .node = nodes[0], .step_nodes = 20, .job_name = std::string(200, 'n')});
  add_sample(cluster.db(), run, 0, 0, 999 * kMiB, "start", 0);
  add_sample(cluster.db(), run, 899999, ns(899999 * 3.97), 999 * kMiB, "end", INT64_MAX / 3);
  std::string path = "phase";
  for (int depth = 0; depth < 20; ++depth) {
    add_phase(cluster.db(), run,
              {.path = path,
               .begin_s = 10.0 + depth,
               .end_s = 800000.5,
               .depth = depth,
               .flags = kUnclosed | kLate | kEndLost | kInterpolated});
    path += "/a-deeper-phase";
  }
  for (const auto& options : {ReportOptions{}, ReportOptions{.instances = true, .nodes = true}}) {
    CHECK(longest_line(report(cluster, options)) <= Table::kWidth);
  }
}

TEST_CASE("flags are short words, explained only where they occur") {
  ClusterFixture cluster;
  typical(cluster);
  CHECK_FALSE(has(report(cluster), "unclosed"));
  const auto run = add_run(cluster.db(), {.begin_s = 18, .end_s = 19, .step = "1"});
  add_phase(cluster.db(), run,
            {.path = "open end", .begin_s = 18, .end_s = 19, .flags = kUnclosed});
  const std::string text = report(cluster);
  INFO(text);
  CHECK(has(text.substr(text.find("    open end")), "unclosed, no-cpu, no-memory"));
  CHECK(has(text, "unclosed: nobody ended it"));
  CHECK_FALSE(has(text, "late:"));
}

TEST_CASE("what is not known is a dash with a reason below") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {.io_source = {}, .io_reason = "/proc is hidden"});
  add_sample(cluster.db(), run, 0, 0, kMiB);
  add_sample(cluster.db(), run, 10, ns(5), kMiB);
  const std::string text = report(cluster);
  CHECK(has(line_with(text, "  step 0"), " - "));
  CHECK(has(text, "Not known, and why\n"));
  CHECK(has(text, "no I/O on n1: /proc is hidden"));
}

TEST_CASE("a flag that every row has is said once") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {.job_memory_bytes = {}, .step_memory_bytes = {}});
  add_samples(cluster.db(), run, 0, 10, 1);
  add_phase(cluster.db(), run, {.path = "a", .begin_s = 1, .end_s = 2, .cpu_s = 1});
  const std::string text = report(cluster);
  CHECK_FALSE(has(line_with(text, "    a "), "no-memory"));
  CHECK(has(text, "all rows: memory or its limit not known"));
}

TEST_CASE("of many nodes only those that did nothing are listed, unless all are asked for") {
  ClusterFixture cluster;
  const JobSpec job;
  add_job(cluster.db(), job);
  std::vector<std::string> nodes;
  for (int i = 1; i <= 20; ++i) {
    nodes.push_back("n" + std::to_string(i));
    if (i == 20) continue;
    const auto run = add_run(cluster.db(), {.node = nodes.back()});
    add_samples(cluster.db(), run, 0, 10, 1);
  }
  add_allocation(cluster.db(), job, nodes, 0, 10);
  const std::string text = report(cluster);
  CHECK(has(line_with(text, "\n20 ").empty() ? line_with(text, "n20") : "", "idle"));
  CHECK(line_with(text, "n7 ").empty());
  CHECK(has(text, "19 of 20 nodes worked and are not listed: --nodes lists them"));
  CHECK_FALSE(line_with(report(cluster, {.nodes = true}), "n7 ").empty());
}

TEST_CASE("starts of a requeued job are sections of their own") {
  ClusterFixture cluster;
  add_job(cluster.db(), {.end_s = 20, .state = "REQUEUED"});
  add_job(cluster.db(), {.restart_count = 1, .begin_s = 100, .end_s = 120});
  add_run(cluster.db(), {.begin_s = 1, .end_s = 19});
  add_run(cluster.db(), {.restart_count = 1, .begin_s = 101, .end_s = 119});
  const std::string text = report(cluster);
  CHECK(has(text, "start 1\n"));
  CHECK(has(text, "start 2 (requeued)\n"));
  CHECK(has(text, "REQUEUED; "));
}

TEST_CASE("a resized job's intervals are listed") {
  ClusterFixture cluster;
  const JobSpec job{.end_s = 20};
  add_job(cluster.db(), job);
  add_allocation(cluster.db(), job, {"n1", "n2", "n3"}, 0, 8, "RESIZING");
  add_allocation(cluster.db(), job, {"n1"}, 8, 20);
  add_run(cluster.db(), {.end_s = 19});
  const std::string text = report(cluster);
  CHECK(has(text, "allocated  n[1-3] (3 nodes), 12 CPUs"));
  CHECK(has(text, "resized"));
  CHECK(has(text, "\n           n1 (1 node), 4 CPUs"));
}

TEST_CASE("array tasks and components are named as Slurm names them") {
  JobFacts job;
  job.job_id = 125;
  CHECK(job_label(job) == "125");
  job.array_job_id = 123;
  job.array_task_id = 4;
  CHECK(job_label(job) == "123_4 (125)");
  job.array_job_id = std::nullopt;
  job.het_job_id = 123;
  job.het_offset = 2;
  CHECK(job_label(job) == "123+2 (125)");
}

TEST_CASE("time in which a job was suspended is told") {
  ClusterFixture cluster;
  typical(cluster);
  CHECK_FALSE(has(report(cluster), "suspended"));
  run_sql(cluster.db(), "UPDATE job SET suspended_s = 62");
  CHECK(has(report(cluster), "suspended for 1m02s"));
}

TEST_CASE("a state is told with exit code, signal and reason") {
  JobFacts job;
  job.state = "FAILED";
  job.exit_code = 3 << 8;
  CHECK(state_label(job) == "FAILED, exit code 3");
  job.exit_code = 0x0f09;  // what the other byte holds then means nothing
  job.state_reason = "NonZeroExitCode";
  CHECK(state_label(job) == "FAILED, signal 9 (NonZeroExitCode)");
  job.state_reason = "None";
  job.exit_code = 0;
  CHECK(state_label(job) == "FAILED");
}

TEST_CASE("a job that nothing is recorded of has a head and a reason, and no table") {
  ClusterFixture cluster;
  add_job(cluster.db(), {});
  const std::string text = report(cluster);
  CHECK(has(text, "COMPLETED; "));
  CHECK(has(text, "nothing was recorded"));
  CHECK_FALSE(has(text, "wasted"));
}

TEST_CASE("a job that waits has nothing missing yet") {
  ClusterFixture cluster;
  add_job(cluster.db(), {.begin_s = std::nullopt, .end_s = std::nullopt, .state = "PENDING"});
  const std::string text = report(cluster);
  CHECK(has(text, "not started"));
  CHECK_FALSE(has(text, "Not known"));
}

TEST_CASE("counters of phases are a table of their own, and their tier stands at the top") {
  ClusterFixture cluster;
  typical(cluster);
  CHECK(has(unwrapped(report(cluster)), "events not recorded"));
  CHECK_FALSE(has(report(cluster), "IPC"));

  run_sql(cluster.db(),
          "UPDATE run SET counter_source = 'papi-hw', counter_reason = 'not counted: X'");
  for (int number : {1, 2}) {
    add_counter(cluster.db(), 2, {.path = "solve", .number = number, .value = 1'500'000'000});
    add_counter(
        cluster.db(), 2,
        {.path = "solve", .number = number, .event = "PAPI_TOT_CYC", .value = 1'000'000'000});
    add_counter(cluster.db(), 2,
                {.path = "solve", .number = number, .event = "PAPI_L3_TCM", .value = 6'000'000});
  }
  const std::string text = report(cluster);
  CHECK(has(unwrapped(text), "events papi-hw (not counted: X)"));
  const std::string solve = line_with(text.substr(text.find("instr")), "solve");
  CHECK(has(solve, " 3.00 G  1.50     4.00 "));
  CHECK_FALSE(has(text, "PAPI_L3_TCM"));  // it stands in a ratio

  add_counter(cluster.db(), 2,
              {.path = "solve", .number = 1, .event = "PAPI_BR_MSP", .value = 12'000'000});
  const std::string more = report(cluster);
  CHECK(has(more, "PAPI_BR_MSP"));
  CHECK(has(unwrapped(more), "12.0 M some-counted"));
  CHECK(longest_line(text) <= Table::kWidth);
}

TEST_CASE("a node that cannot count says why in every report") {
  ClusterFixture cluster;
  typical(cluster);
  run_sql(cluster.db(), "UPDATE run SET counter_source = 'none', counter_reason = 'no PMU'");
  CHECK(has(unwrapped(report(cluster)), "no events (no PMU)"));
}
