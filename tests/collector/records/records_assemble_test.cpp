// Source: collector/records/records_assemble.cpp. The rows are those that slurmctld and
// slurmdbd 22.05.8 gave for real jobs, with round times.
#include <doctest/doctest.h>

#include "collector/records/records.h"

using namespace sphase;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

JobRow row(std::string state, std::int64_t submit, Maybe start, Maybe end, std::string nodes = "n1",
           Maybe count = 1) {
  JobRow row;
  row.facts.cluster = "c1";
  row.facts.job_id = 5;
  row.facts.uid = 1000;
  row.facts.name = "job";
  row.facts.state = std::move(state);
  row.facts.submit_s = submit;
  row.facts.start_s = start;
  row.facts.end_s = end;
  row.facts.requested_nodes = count;
  row.nodes = std::move(nodes);
  row.node_count = count;
  return row;
}

JobRow live(std::string state, std::int64_t submit, Maybe start, Maybe end, std::int64_t restarts,
            std::string nodes = "n1", Maybe count = 1) {
  JobRow shown = row(std::move(state), submit, start, end, std::move(nodes), count);
  shown.restarts = restarts;
  shown.facts.qos = "normal";
  shown.each_node = {{"n1", 4, 100}};
  return shown;
}

}  // namespace

TEST_CASE("a resized job is one start with several allocations") {
  const auto records = assemble_records(
      {},
      {row("RESIZING", 100, 101, 110, "n[1-4]", 4), row("RESIZING", 110, 101, 120, "n[1-2]", 2),
       row("COMPLETED", 120, 101, 150, "n1", 1)},
      {});
  REQUIRE(records.size() == 1);
  const auto& job = records.front();
  CHECK(job.facts.submit_s == 100);
  CHECK(job.facts.start_s == 101);
  CHECK(job.facts.end_s == 150);
  CHECK(job.facts.state == "COMPLETED");
  CHECK(job.facts.requested_nodes == 4);  // as first asked for
  REQUIRE(job.allocations.size() == 3);
  CHECK(job.allocations[0].begin_ns == 101 * kSecond);
  CHECK(job.allocations[1].begin_ns == 110 * kSecond);
  CHECK(job.allocations[1].end_ns == 120 * kSecond);
  CHECK(job.allocations[2].expression == "n1");
}

TEST_CASE("a job that was resized and still runs has no end") {
  const auto records = assemble_records(
      {}, {row("RESIZING", 100, 101, 110, "n[1-4]", 4), row("RUNNING", 110, 110, {}, "n1", 1)}, {});
  REQUIRE(records.size() == 1);
  CHECK_FALSE(records.front().facts.end_s.has_value());
  CHECK(records.front().facts.start_s == 101);
}

TEST_CASE("a requeued job is several starts of one submission") {
  const auto records =
      assemble_records({},
                       {row("COMPLETED", 113, 130, 140), row("REQUEUED", 100, 101, 110),
                        row("REQUEUED", 111, 112, 113)},
                       {});
  REQUIRE(records.size() == 3);
  for (std::int64_t i = 0; i < 3; ++i) {
    CHECK(records[static_cast<std::size_t>(i)].facts.restart_count == i);
    CHECK(records[static_cast<std::size_t>(i)].facts.submit_s == 100);
  }
  CHECK(records[1].facts.start_s == 112);
}

TEST_CASE("a job requeued after its node failed goes on as the same submission") {
  const auto records =
      assemble_records({}, {row("NODE_FAIL", 100, 101, 110), row("RUNNING", 112, 115, {})}, {});
  REQUIRE(records.size() == 2);
  CHECK(records[1].facts.restart_count == 1);
}

TEST_CASE("a job id that was used again is another submission") {
  const auto records = assemble_records(
      {}, {row("COMPLETED", 100, 101, 110), row("COMPLETED", 9000, 9001, 9010)}, {});
  REQUIRE(records.size() == 2);
  CHECK(records[0].facts.restart_count == 0);
  CHECK(records[1].facts.restart_count == 0);
  CHECK(records[1].facts.submit_s == 9000);
}

TEST_CASE("the number of another user's requeued job is another submission") {
  auto other = row("COMPLETED", 9000, 9001, 9010);
  other.facts.uid = 1001;
  const auto records = assemble_records({}, {row("REQUEUED", 100, 101, 110), other}, {});
  CHECK(records[1].facts.restart_count == 0);
}

TEST_CASE("a completed job that somebody requeued is known by slurmctld or by its run") {
  const std::vector<JobRow> rows = {row("COMPLETED", 100, 101, 110), row("RUNNING", 130, 131, {})};
  const auto told = assemble_records(
      rows.size() == 2 ? std::vector{live("RUNNING", 130, 131, {}, 1)} : std::vector<JobRow>(),
      rows, {});
  REQUIRE(told.size() == 2);
  CHECK(told[1].facts.restart_count == 1);
  CHECK(told[1].facts.submit_s == 100);
  const auto seen = assemble_records({}, rows, {{"c1", 5, 1, 132}});
  CHECK(seen[1].facts.restart_count == 1);
}

TEST_CASE("where older rows are gone from slurmdbd, a run tells which start it is") {
  const auto records = assemble_records(
      {}, {row("REQUEUED", 300, 301, 310), row("COMPLETED", 311, 320, 330)}, {{"c1", 5, 2, 302}});
  REQUIRE(records.size() == 2);
  CHECK(records[0].facts.restart_count == 2);
  CHECK(records[1].facts.restart_count == 3);
}

TEST_CASE("slurmctld adds what it alone knows to slurmdbd's row") {
  const auto records =
      assemble_records({live("RUNNING", 100, 101, {}, 0)}, {row("RUNNING", 100, 101, {})}, {});
  REQUIRE(records.size() == 1);
  CHECK(records[0].facts.source == "slurmctld+slurmdbd");
  CHECK(records[0].facts.qos == "normal");
  REQUIRE(records[0].allocations.size() == 1);
  CHECK(records[0].allocations[0].nodes.front().cpus == 4);
}

TEST_CASE("slurmctld knows of a start or a resize before slurmdbd does") {
  // Seen in the first second of a job: slurmdbd still has it as pending.
  const auto started = assemble_records({live("RUNNING", 100, 101, {}, 0, "n[1-4]", 4)},
                                        {row("PENDING", 100, 101, {}, "n1", 1)}, {});
  REQUIRE(started.size() == 1);
  CHECK(started[0].facts.state == "RUNNING");
  CHECK(started[0].allocations[0].expression == "n[1-4]");

  auto smaller = live("RUNNING", 100, 101, {}, 0, "n1", 1);
  smaller.resize_s = 120;
  const auto resized = assemble_records({smaller}, {row("RUNNING", 100, 101, {}, "n[1-4]", 4)}, {});
  REQUIRE(resized.size() == 1);
  REQUIRE(resized[0].allocations.size() == 2);
  CHECK(resized[0].allocations[0].end_ns == 120 * kSecond);
  CHECK(resized[0].allocations[1].begin_ns == 120 * kSecond);
  CHECK(resized[0].facts.requested_nodes == 4);
}

TEST_CASE("a requeued job that waits again is a start without a begin") {
  const auto records =
      assemble_records({live("PENDING", 113, {}, {}, 1, "", {})},
                       {row("REQUEUED", 100, 101, 110), row("PENDING", 113, {}, {}, "", {})}, {});
  REQUIRE(records.size() == 2);
  CHECK(records[1].facts.restart_count == 1);
  CHECK_FALSE(records[1].facts.start_s.has_value());
  CHECK(records[1].allocations.empty());
  CHECK(records[0].facts.state == "REQUEUED");
}

TEST_CASE("without slurmdbd slurmctld's word is enough") {
  const auto records = assemble_records({live("RUNNING", 100, 101, {}, 2)}, {}, {});
  REQUIRE(records.size() == 1);
  CHECK(records[0].facts.restart_count == 2);
  CHECK(records[0].facts.source == "slurmctld");
  CHECK(records[0].allocations.size() == 1);
}

TEST_CASE("without slurmdbd the time before a resize is known by its length alone") {
  auto job = live("RUNNING", 100, 101, {}, 0);
  job.resize_s = 120;
  const auto records = assemble_records({job}, {}, {});
  REQUIRE(records[0].allocations.size() == 2);
  CHECK_FALSE(records[0].allocations[0].expression.has_value());
  CHECK(records[0].allocations[0].begin_ns == 101 * kSecond);
  CHECK(records[0].allocations[1].begin_ns == 120 * kSecond);
}
