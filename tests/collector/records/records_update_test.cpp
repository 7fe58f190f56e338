// Sources: collector/records/records_update.cpp, open_jobs.cpp, records_looks.cpp,
// records_allocations.cpp.
#include <doctest/doctest.h>

#include <chrono>

#include "collector/records/record_poller.h"
#include "tests/collector/records/fake_records.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

Maybe after(std::int64_t seconds) { return kStartS + seconds; }

/// Job 123 as slurmctld shows it.
JobRow shown(const std::string& state, double begin_s = 0, std::optional<double> end_s = {}) {
  JobRow shown = row(123, state, 0, begin_s, end_s);
  shown.restarts = 0;
  if (state == "PENDING") {
    shown.facts.start_s.reset();
    shown.nodes.clear();
    shown.each_node.clear();
  }
  return shown;
}

JobRow on_nodes(JobRow job, std::int64_t nodes, Maybe resize_s = {}) {
  job.resize_s = resize_s;
  job.node_count = nodes;
  job.each_node.clear();
  for (std::int64_t i = 1; i <= nodes; ++i)
    job.each_node.push_back({"n" + std::to_string(i), {}, {}});
  job.nodes = "n[1-" + std::to_string(nodes) + "]";
  return job;
}

/// "begin-end:nodes …" of the job's allocations, s after the start.
std::string allocations(ClusterFixture& cluster) {
  std::string text;
  const auto starts = cluster.load("123");
  for (const auto& one : starts.front().allocations) {
    text += (text.empty() ? "" : " ") + std::to_string(one.begin_ns / kSecond - kStartS) + "-" +
            (one.end_ns ? std::to_string(*one.end_ns / kSecond - kStartS) : "") + ":" +
            std::to_string(one.nodes.size());
  }
  return text;
}

std::string suspensions(ClusterFixture& cluster) {
  std::string text;
  const auto starts = cluster.load("123");
  for (const auto& one : starts.front().suspensions) {
    text += (text.empty() ? "" : " ") + std::to_string(one.begin_ns / kSecond - kStartS) + "-" +
            (one.end_ns ? std::to_string(*one.end_ns / kSecond - kStartS) : "");
  }
  return text;
}

std::string waits(ClusterFixture& cluster) {
  std::string text;
  const auto starts = cluster.load("123");
  for (const auto& one : starts.front().waits) {
    text += (text.empty() ? "" : " ") + one.reason + ":" +
            std::to_string(one.begin_ns / kSecond - kStartS) + "-" +
            (one.end_ns ? std::to_string(*one.end_ns / kSecond - kStartS) : "");
  }
  return text;
}

void look(ClusterFixture& cluster, FakeRecords& records, const JobRow& live, double now_s) {
  records.slurmctld = std::vector{live};
  update(cluster, records, now_s);
}

}  // namespace

// --- whom and when ------------------------------------------------------------------------------

TEST_CASE("a hundred thousand ended jobs cost a look nothing") {
  ClusterFixture cluster;
  run_sql(cluster.db(),
          "BEGIN; INSERT INTO run(cluster, job_id, restart_count, start_ns, step, node, uid,"
          " sphase_version, period_ns) WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1"
          " FROM n WHERE i < 100999) SELECT 'c1', i, 0, i * 1000000000, '0', 'n1', 1000, '0.1.0',"
          " 1000000000 FROM n;"
          " INSERT INTO job(cluster, job_id, restart_count, submit_time, start_time, end_time,"
          " state, source, seen_ns) SELECT cluster, job_id, 0, job_id, job_id, job_id + 10,"
          " 'COMPLETED', 'slurmdbd', 0 FROM run; DELETE FROM open_job; COMMIT");
  add_run(cluster.db(), {});
  FakeRecords records;
  records.slurmctld = std::vector{shown("RUNNING")};
  const auto begin = std::chrono::steady_clock::now();
  update(cluster, records);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  MESSAGE("a look with 1 open and 100000 ended jobs: ", took.count(), " ms");
  CHECK(records.last.job_ids == std::vector<std::int64_t>{123});
  CHECK(took.count() < 600);
}

TEST_CASE("ten thousand jobs that wait are looked at within some seconds") {
  ClusterFixture cluster;
  FakeRecords records;
  std::vector<JobRow> rows;
  for (int job = 1; job <= 10'000; ++job) {
    auto waiting = row(job, "PENDING", 0, 0, {});
    waiting.facts.start_s.reset();
    waiting.facts.state_reason = "Priority";
    waiting.nodes.clear();
    waiting.each_node.clear();
    rows.push_back(waiting);
  }
  records.slurmctld = rows;
  for (const double now_s : {10.0, 70.0}) {
    const auto begin = std::chrono::steady_clock::now();
    CHECK(update(cluster, records, now_s, {true, nullptr}).jobs == 10'000);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    MESSAGE("a look at 10000 waiting jobs: ", took.count(), " s");
    CHECK(took.count() < 30);
  }
  CHECK(count(cluster.db(), "wait_reason") == 10'000);
}

TEST_CASE("a poller keeps looks a minute apart") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  records.slurmctld = std::vector{shown("RUNNING")};
  RecordPoller poller({});
  for (int second = 0; second < 180; second += 5)
    update(cluster, records, second, {false, &poller});
  CHECK(records.asked_slurmctld == 3);
  CHECK(records.asked_slurmdbd == 3);
}

TEST_CASE("a daemon that is away is named in each round, and what was missed is asked again") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  RecordPoller poller({60, 900}, [] { return 0.0; });
  records.slurmdbd = Error{"slurmdbd could not be asked: refused"};
  records.slurmctld = std::vector{shown("COMPLETED", 0, 10)};
  for (const double now_s : {20.0, 100.0, 5000.0}) {
    CHECK(update(cluster, records, now_s, {false, &poller}).warnings ==
          std::vector<std::string>{"slurmdbd could not be asked: refused"});
    records.slurmctld = std::vector<JobRow>();  // it has forgotten the job
  }
  CHECK(count(cluster.db(), "open_job") == 1);
  records.slurmdbd = std::vector{on_nodes(row(123, "RESIZING", 0, 0, 4), 2),
                                 on_nodes(row(123, "COMPLETED", 4, 0, 10), 1)};
  CHECK(update(cluster, records, 9000, {false, &poller}).warnings.empty());
  CHECK(allocations(cluster) == "0-4:2 4-10:1");
  CHECK(count(cluster.db(), "open_job") == 0);
}

TEST_CASE("a job that no daemon knows is asked for later and later, and given up in the end") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  RecordPoller poller({1, 900});
  int rounds = 0;
  for (std::int64_t hour = 0; hour < 24 * 30 && count(cluster.db(), "open_job") > 0; ++hour) {
    update(cluster, records, static_cast<double>(hour * 3600), {false, &poller});
    ++rounds;
  }
  CHECK(records.asked_slurmdbd == 20);
  CHECK(rounds > 24 * 5);
  add_run(cluster.db(), {.step = "1"});  // it is heard of again
  CHECK(count(cluster.db(), "open_job") == 1);
}

TEST_CASE("without an answer of slurmctld's a job is not counted as unknown") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  records.slurmctld = Error{"away"};
  update(cluster, records);
  CHECK(count(cluster.db(), "open_job WHERE misses = 0") == 1);
}

TEST_CASE("all jobs are kept where they are wanted, and settled ones are left alone") {
  ClusterFixture cluster;
  FakeRecords records;
  auto other = row(77, "COMPLETED", 0, 0, 10);
  records.slurmctld = std::vector{shown("RUNNING"), other};
  records.slurmdbd = std::vector{other};
  CHECK(update(cluster, records, 20, {true, nullptr}).jobs == 2);
  CHECK(records.last.job_ids == std::vector<std::int64_t>{77, 123});
  update(cluster, records, 700, {true, nullptr});
  CHECK(count(cluster.db(), "open_job WHERE job_id = 77") == 0);
  CHECK(update(cluster, records, 760, {true, nullptr}).jobs == 1);
  CHECK(records.last.job_ids == std::vector<std::int64_t>{123});
}

TEST_CASE("several notices of one job open it once, also where some are known") {
  ClusterFixture cluster;
  add_notice(cluster.db(), "n1", "a", "x", "0", 55, 3);
  run_sql(cluster.db(),
          "INSERT OR IGNORE INTO notice SELECT run_id, cluster, job_id, restart_count,"
          " step, 'n2', time_ns - 1000000000, code, text FROM notice");
  CHECK(count(cluster.db(), "open_job") == 1);
  CHECK(count(cluster.db(), "open_job WHERE since_time = " + std::to_string(kStartS + 2)) == 1);
}

// --- what is kept -------------------------------------------------------------------------------

TEST_CASE("a suspension is seen while it lasts, and closed when the job goes on") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  auto job = shown("SUSPENDED");
  job.suspend_s = after(10);
  job.ran_s = 10;
  look(cluster, records, job, 15);
  look(cluster, records, job, 20);
  CHECK(suspensions(cluster) == "10-");
  job.facts.state = "RUNNING";
  job.suspend_s = after(40);
  look(cluster, records, job, 60);
  CHECK(suspensions(cluster) == "10-40");
}

TEST_CASE("a suspension between two looks is known by what the job had run") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  auto job = shown("RUNNING");
  job.suspend_s = after(25);
  job.ran_s = 10;
  look(cluster, records, job, 60);
  CHECK(suspensions(cluster) == "10-25");
  job.suspend_s = after(50);  // and once more for 5 s
  job.ran_s = 30;
  look(cluster, records, job, 120);
  CHECK(suspensions(cluster) == "10-25 45-50");
}

TEST_CASE("a job that is cancelled while it is suspended ends when it was suspended") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  auto job = shown("SUSPENDED");
  job.suspend_s = after(10);
  job.ran_s = 10;
  look(cluster, records, job, 15);
  auto ended = shown("CANCELLED", 0, 10);
  ended.suspend_s = after(10);
  ended.ran_s = 10;
  look(cluster, records, ended, 60);
  CHECK(suspensions(cluster).empty());
}

TEST_CASE("slurmdbd's sum ends a suspension that slurmctld did not live to see") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  auto job = shown("SUSPENDED");
  job.suspend_s = after(10);
  job.ran_s = 10;
  look(cluster, records, job, 15);
  records.slurmctld = std::vector<JobRow>();
  auto ended = row(123, "COMPLETED", 0, 0, 100);
  ended.facts.suspended_s = 30;
  records.slurmdbd = std::vector{ended};
  update(cluster, records, 1000);
  CHECK(suspensions(cluster) == "10-40");
  CHECK(cluster.load("123").front().job.suspended_s == 30);
}

TEST_CASE("only changes of the reason for waiting are kept") {
  ClusterFixture cluster;
  add_run(cluster.db(), {.begin_s = 300, .end_s = 310});
  FakeRecords records;
  auto job = shown("PENDING");
  for (const auto& [reason, now_s] : std::vector<std::pair<std::string, double>>{
           {"Priority", 10}, {"Priority", 70}, {"Resources", 130}, {"Resources", 190}}) {
    job.facts.state_reason = reason;
    look(cluster, records, job, now_s);
  }
  CHECK(waits(cluster) == "Priority:10-130 Resources:130-");
  look(cluster, records, shown("RUNNING", 200), 250);
  CHECK(waits(cluster) == "Priority:10-130 Resources:130-200");
}

TEST_CASE("the request stays that of the first look, whatever a resize makes of it") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  auto job = on_nodes(shown("RUNNING"), 3);
  job.facts.requested_nodes = 3;
  job.facts.time_limit_s = job.facts.requested_time_limit_s = 600;
  look(cluster, records, job, 5);
  job = on_nodes(job, 1, after(20));
  job.facts.requested_nodes.reset();
  job.facts.time_limit_s = job.facts.requested_time_limit_s = 1200;
  look(cluster, records, job, 30);
  const JobFacts facts = cluster.load("123").front().job;
  CHECK(facts.requested_nodes == 3);
  CHECK(facts.requested_time_limit_s == 600);
  CHECK(facts.time_limit_s == 1200);
}

TEST_CASE("resizes while slurmdbd is away are kept, and corrected by it without duplicates") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  records.slurmdbd = Error{"away"};
  look(cluster, records, on_nodes(shown("RUNNING"), 4), 5);
  look(cluster, records, on_nodes(shown("RUNNING"), 3, after(10)), 15);
  // Two resizes between two looks: the first of them is not seen.
  look(cluster, records, on_nodes(shown("RUNNING"), 1, after(30)), 40);
  CHECK(allocations(cluster) == "0-10:4 10-30:3 30-:1");
  // slurmdbd is behind: what it has not heard of yet stays.
  records.slurmdbd = std::vector{on_nodes(row(123, "RUNNING", 0, 0, {}), 4)};
  update(cluster, records, 45);
  CHECK(allocations(cluster) == "0-10:4 10-30:3 30-:1");
  // By slurmdbd's clock a resize was a second later.
  records.slurmdbd = std::vector{
      on_nodes(row(123, "RESIZING", 0, 0, 11), 4), on_nodes(row(123, "RESIZING", 11, 0, 20), 3),
      on_nodes(row(123, "RESIZING", 20, 0, 30), 2), on_nodes(row(123, "RUNNING", 30, 0, {}), 1)};
  update(cluster, records, 50);
  update(cluster, records, 55);
  CHECK(allocations(cluster) == "0-11:4 11-20:3 20-30:2 30-:1");
  CHECK(count(cluster.db(), "allocation_node") == 10);
}

TEST_CASE("an interval that a look placed inside one of slurmdbd's is given up") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  records.slurmdbd = Error{"away"};
  look(cluster, records, on_nodes(shown("RUNNING"), 4), 5);
  look(cluster, records, on_nodes(shown("RUNNING"), 1, after(30)), 40);
  records.slurmctld = std::vector<JobRow>();
  records.slurmdbd = std::vector{on_nodes(row(123, "RESIZING", 0, 0, 60), 4),
                                 on_nodes(row(123, "COMPLETED", 60, 0, 90), 1)};
  update(cluster, records, 100);
  CHECK(allocations(cluster) == "0-60:4 60-90:1");
}

TEST_CASE("a resize in the second of the start leaves the later nodes alone") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  records.slurmdbd = std::vector{on_nodes(row(123, "RUNNING", 0, 0, {}), 3)};
  update(cluster, records, 1);
  records.slurmdbd = std::vector{on_nodes(row(123, "RESIZING", 0, 0, 0), 3),
                                 on_nodes(row(123, "RUNNING", 0, 0, {}), 1)};
  update(cluster, records, 5);
  CHECK(allocations(cluster) == "0-:1");
}

TEST_CASE("slurmdbd may hear of a new interval before it hears of the old one's end") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  records.slurmctld = std::vector{on_nodes(shown("RUNNING"), 1, after(10))};
  records.slurmdbd = std::vector{on_nodes(row(123, "RUNNING", 0, 0, {}), 3),
                                 on_nodes(row(123, "RUNNING", 10, 0, {}), 1)};
  update(cluster, records, 20);
  CHECK(count(cluster.db(), "job") == 1);
  CHECK(allocations(cluster) == "0-10:3 10-:1");
  CHECK(count(cluster.db(), "allocation WHERE state = 'RESIZING'") == 1);
}

TEST_CASE("an older word of slurmdbd's does not undo what slurmctld has shown") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  look(cluster, records, shown("COMPLETED", 0, 10), 12);
  records.slurmctld = std::vector<JobRow>();
  for (const bool started : {true, false}) {
    auto late = row(123, started ? "RUNNING" : "PENDING", 0, 0, {});
    if (!started) late.facts.start_s.reset();
    records.slurmdbd = std::vector{late};
    update(cluster, records, 700);
    CHECK(count(cluster.db(), "job WHERE state = 'COMPLETED' AND end_time IS NOT NULL") == 1);
    CHECK(count(cluster.db(), "open_job") == 1);  // slurmdbd has yet to hear of the end
  }
}

TEST_CASE("without slurmdbd the start before a requeue ends when the job was submitted again") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  records.slurmdbd = Error{"away"};
  look(cluster, records, shown("RUNNING"), 5);
  auto again = row(123, "PENDING", 8, 0, {});
  again.facts.start_s.reset();
  again.nodes.clear();
  again.each_node.clear();
  again.restarts = 1;
  look(cluster, records, again, 12);
  CHECK(count(cluster.db(), "job WHERE restart_count = 0 AND state = 'REQUEUED' AND end_time = " +
                                std::to_string(kStartS + 8)) == 1);
  CHECK(count(cluster.db(),
              "job WHERE restart_count = 1 AND submit_time = " + std::to_string(kStartS)) == 1);
}

// --- helpers and arrays -------------------------------------------------------------------------

TEST_CASE("a helper is known by what it waits for, by its command, or by when its parent grew") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  auto helper = row(200, "COMPLETED", 5, 5, 9);
  helper.nodes.clear();
  helper.each_node.clear();
  auto parent = on_nodes(shown("RUNNING"), 2, after(9));
  SUBCASE("by its dependency") { helper.facts.helper_of = 123; }
  SUBCASE("by its command") {
    helper.gave_away = true;
    auto kept = row(200, "COMPLETED", 5, 5, 9);
    kept.facts.helper_of = 123;
    records.slurmdbd = std::vector{kept};
  }
  SUBCASE("by when its parent grew") {
    helper.gave_away = true;
    helper.resize_s = after(9);
  }
  records.slurmctld = std::vector{parent, helper};
  update(cluster, records, 20);
  CHECK(records.last.job_ids == std::vector<std::int64_t>{123, 200});
  CHECK(cluster.load("200").front().job.helper_of == 123);
  CHECK(cluster.load("123").front().helpers == std::vector<std::int64_t>{200});
}

TEST_CASE("a helper of a job that nobody recorded is not kept") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  FakeRecords records;
  auto helper = row(200, "COMPLETED", 5, 5, 9);
  helper.gave_away = true;
  helper.resize_s = after(9);
  auto foreign = row(201, "PENDING", 5, 5, {});
  foreign.facts.helper_of = 99;
  records.slurmctld = std::vector{shown("RUNNING"), helper, foreign};
  update(cluster, records, 20);
  CHECK(count(cluster.db(), "job") == 1);
}

TEST_CASE("tasks of an array that wait are found in the one record that they are") {
  ClusterFixture cluster;
  FakeRecords records;
  auto tasks = row(123, "PENDING", 0, 0, {});
  tasks.facts.start_s.reset();
  tasks.facts.array_job_id = 123;
  tasks.facts.array_tasks = "1,4-9%2";
  records.slurmctld = std::vector{tasks};
  update(cluster, records, 10, {true, nullptr});
  CHECK(cluster.load("123_5").front().job.array_tasks == "1,4-9%2");
  CHECK(cluster.error_of("123_3").find("not known") != std::string::npos);
  // The last of them keeps the array's own number.
  auto last = shown("RUNNING");
  last.facts.array_job_id = 123;
  last.facts.array_task_id = 9;
  records.slurmctld = std::vector{last};
  update(cluster, records, 20, {true, nullptr});
  CHECK(count(cluster.db(), "job WHERE array_task_id = 9 AND array_tasks IS NULL") == 1);
  CHECK(count(cluster.db(), "job") == 1);
}
