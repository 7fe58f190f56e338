// Source: collector/records/records_store.cpp.
#include <doctest/doctest.h>

#include "tests/collector/records/fake_records.h"

using namespace sphase;
using namespace sphase::testing;

TEST_CASE("each daemon is asked once, however many jobs there are") {
  ClusterFixture cluster;
  FakeRecords records;
  std::vector<JobRow> rows;
  for (int job = 1; job <= 300; ++job) {
    add_run(cluster.db(), {.job_id = job});
    rows.push_back(row(job, "COMPLETED", 0, 0, 10));
  }
  records.slurmdbd = rows;
  const auto outcome = update(cluster, records);
  CHECK(records.asked_slurmctld == 1);
  CHECK(records.asked_slurmdbd == 1);
  CHECK(records.last.job_ids.size() == 300);
  CHECK(records.last.clusters == std::vector<std::string>{"c1"});
  CHECK(records.last.since_s == kStartS - 7 * 86400);
  CHECK(outcome.jobs == 300);
  CHECK(count(cluster.db(), "job") == 300);
}

TEST_CASE("nothing is asked where nothing is to be known") {
  ClusterFixture cluster;
  FakeRecords records;
  update(cluster, records);
  CHECK(records.asked_slurmctld == 0);
  add_run(cluster.db(), {});
  records.slurmdbd = std::vector{row(123, "COMPLETED", 0, 0, 10)};
  update(cluster, records, 20);  // ended a moment ago: the last word may still come
  update(cluster, records, 1000);
  CHECK(records.asked_slurmdbd == 2);
  update(cluster, records, 1001);  // long over
  CHECK(records.asked_slurmdbd == 2);
}

TEST_CASE("a run after the end of the known job asks again: the number was used once more") {
  ClusterFixture cluster;
  FakeRecords records;
  add_run(cluster.db(), {});
  records.slurmdbd = std::vector{row(123, "COMPLETED", 0, 0, 10)};
  update(cluster, records, 1000);
  add_run(cluster.db(), {.begin_s = 5001, .end_s = 5009});
  records.slurmdbd =
      std::vector{row(123, "COMPLETED", 0, 0, 10), row(123, "COMPLETED", 5000, 5000, 5010)};
  update(cluster, records, 6000);
  CHECK(records.asked_slurmdbd == 2);
  CHECK(count(cluster.db(), "job") == 2);
}

TEST_CASE("a daemon that cannot be asked is a warning, and the other's word is kept") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  records.slurmctld = Error{"slurmctld could not be asked: Connection refused"};
  records.slurmdbd = std::vector{row(123, "COMPLETED", 0, 0, 10)};
  const auto outcome = update(cluster, records);
  CHECK(outcome.warnings ==
        std::vector<std::string>{"slurmctld could not be asked: Connection refused"});
  CHECK(outcome.jobs == 1);
}

TEST_CASE("jobs that nobody recorded are not kept") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  auto foreign = row(123, "RUNNING", 0, 0, {});
  foreign.facts.cluster = "c2";
  records.slurmctld = std::vector{row(77, "RUNNING", 0, 0, {}), foreign};
  update(cluster, records);
  CHECK(count(cluster.db(), "job") == 0);
}

TEST_CASE("a job of which only a notice came is asked for") {
  ClusterFixture cluster;
  add_notice(cluster.db(), "n1", "not-active", "x", "0", 55);
  FakeRecords records;
  update(cluster, records);
  CHECK(records.last.job_ids == std::vector<std::int64_t>{55});
}

TEST_CASE("storing the same records twice changes nothing") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  records.slurmdbd = std::vector{row(123, "REQUEUED", 0, 0, 10), row(123, "RUNNING", 11, 20, {})};
  update(cluster, records);
  update(cluster, records);
  CHECK(count(cluster.db(), "job") == 2);
  CHECK(count(cluster.db(), "allocation") == 2);
  CHECK(count(cluster.db(), "allocation_node") == 2);
}

TEST_CASE("what slurmctld knew while the job ran is kept when only slurmdbd is left") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  auto shown = row(123, "RUNNING", 0, 0, {});
  shown.restarts = 0;
  shown.facts.qos = "high";
  shown.each_node = {{"n1", 8, 500}};
  records.slurmctld = std::vector{shown};
  records.slurmdbd = std::vector{row(123, "RUNNING", 0, 0, {})};
  update(cluster, records, 5);
  records.slurmctld = std::vector<JobRow>();
  records.slurmdbd = std::vector{row(123, "COMPLETED", 0, 0, 10)};
  update(cluster, records);
  CHECK(count(cluster.db(), "job WHERE qos = 'high' AND state = 'COMPLETED'") == 1);
  CHECK(count(cluster.db(), "allocation_node WHERE cpus = 8 AND memory_bytes = 500") == 1);
  CHECK(count(cluster.db(), "allocation WHERE end_time IS NOT NULL") == 1);
}

TEST_CASE("a start keeps its identity when the daemons forget what came before") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  add_run(cluster.db(), {.restart_count = 1, .begin_s = 21, .end_s = 29});
  FakeRecords records;
  records.slurmdbd = std::vector{row(123, "REQUEUED", 0, 0, 10), row(123, "RUNNING", 11, 20, {})};
  update(cluster, records, 25);
  // The first row is purged; slurmctld shows the second submission time.
  auto shown = row(123, "COMPLETED", 11, 20, 30);
  shown.restarts = 1;
  records.slurmctld = std::vector{shown};
  records.slurmdbd = std::vector{row(123, "COMPLETED", 11, 20, 30)};
  update(cluster, records);
  CHECK(count(cluster.db(), "job") == 2);
  CHECK(count(cluster.db(), "job WHERE restart_count = 1 AND state = 'COMPLETED'") == 1);
  const auto starts = cluster.load("123");
  REQUIRE(starts.size() == 2);
  CHECK(starts[1].runs.size() == 1);
}

TEST_CASE("a start that no run tells of keeps its number when the rows before it are purged") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  records.slurmdbd = std::vector{row(123, "REQUEUED", 0, 0, 10), row(123, "RUNNING", 11, 20, {})};
  update(cluster, records, 25);
  records.slurmdbd = std::vector{row(123, "COMPLETED", 11, 20, 30)};
  update(cluster, records);
  CHECK(count(cluster.db(), "job") == 2);
  CHECK(count(cluster.db(), "job WHERE restart_count = 1 AND state = 'COMPLETED'") == 1);
}

TEST_CASE("without slurmdbd a requeued job's starts are joined by what was seen before") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  auto first = row(123, "RUNNING", 0, 0, {});
  first.restarts = 0;
  records.slurmctld = std::vector{first};
  update(cluster, records, 5);
  auto second = row(123, "RUNNING", 11, 20, {});
  second.restarts = 1;
  records.slurmctld = std::vector{second};
  update(cluster, records, 25);
  CHECK(count(cluster.db(), "job WHERE submit_time = " + std::to_string(kStartS)) == 2);
}

TEST_CASE("without slurmdbd each resize closes the allocation that was seen before it") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  auto shown = row(123, "RUNNING", 0, 0, {});
  shown.restarts = 0;
  for (const Maybe resize : {Maybe(), Maybe(kStartS + 10), Maybe(kStartS + 20)}) {
    shown.resize_s = resize;
    records.slurmctld = std::vector{shown};
    update(cluster, records, 5);
  }
  CHECK(count(cluster.db(), "allocation") == 3);
  CHECK(count(cluster.db(), "allocation WHERE end_time IS NULL") == 1);
  CHECK(count(cluster.db(), "allocation WHERE start_time + 10 = end_time") == 2);
}

TEST_CASE("an admin comment that was seen is not forgotten when a daemon shows none") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  auto shown = row(123, "RUNNING", 0, 0, {});
  shown.facts.admin_comment = "sphase/1 profile=1000/a";
  records.slurmctld = std::vector{shown};
  update(cluster, records, 5);
  shown.facts.admin_comment.reset();
  records.slurmctld = std::vector{shown};
  records.slurmdbd = std::vector{row(123, "COMPLETED", 0, 0, 10)};
  update(cluster, records, 15);
  CHECK(count(cluster.db(), "job WHERE admin_comment = 'sphase/1 profile=1000/a'") == 1);
  CHECK(cluster.load("123").front().job.admin_comment == "sphase/1 profile=1000/a");
}

TEST_CASE("limits of partitions are asked for once in ten minutes, and gone ones are forgotten") {
  ClusterFixture cluster;
  FakeRecords records;
  records.limits = std::vector<PartitionRow>{{"c1", "debug", 1, 4, 3600, 2000 * kMiB, 8},
                                             {"c1", "old", {}, {}, {}, {}, {}}};
  REQUIRE(update_partitions(cluster.db(), records, at(0)));
  REQUIRE(update_partitions(cluster.db(), records, at(599)));
  CHECK(records.asked_partitions == 1);
  CHECK(count(cluster.db(), "partition_limits WHERE nodes_most IS NULL") == 1);
  records.limits = std::vector<PartitionRow>{{"c1", "debug", 1, 2, 3600, 2000 * kMiB, 8}};
  REQUIRE(update_partitions(cluster.db(), records, at(601)));
  CHECK(records.asked_partitions == 2);
  CHECK(count(cluster.db(), "partition_limits") == 1);
  CHECK(count(cluster.db(), "partition_limits WHERE nodes_most = 2") == 1);
}

TEST_CASE("partitions that cannot be read are a warning, and the old limits stay") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  records.limits = std::vector<PartitionRow>{{"c1", "debug", 1, 4, 3600, {}, {}}};
  update(cluster, records, 100);
  records.limits = Error{"no answer"};
  const auto outcome = update(cluster, records, 1000);
  CHECK(says(outcome.warnings, "partitions: no answer"));
  CHECK(count(cluster.db(), "partition_limits") == 1);
}

TEST_CASE("without an answer of slurmctld it is not asked for partitions too") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  records.slurmctld = Error{"no answer"};
  update(cluster, records);
  CHECK(records.asked_partitions == 0);
}
