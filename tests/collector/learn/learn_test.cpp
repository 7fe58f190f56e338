#include "collector/learn/learn.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "collector/file_lock.h"
#include "collector/learn/advice_table.h"
#include "collector/learn/learn_store.h"
#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

/// A database with jobs, and a table beside it.
struct LearnFixture : ClusterFixture {
  SiteConfig config;
  LearnOptions options;
  std::int64_t now_ns = at(100'000);

  LearnFixture() { options.table = folder() / "advice.cdb"; }

  /// An ended job of one node, ten seconds, of profile `name` of user 1000.
  void add_ended(std::int64_t job_id, const std::string& name = "p", double begin_s = 0) {
    const JobSpec job{
        .job_id = job_id, .submit_s = begin_s, .begin_s = begin_s, .end_s = begin_s + 10};
    add_job(db(), job);
    add_allocation(db(), job, {"n1"}, begin_s, begin_s + 10);
    const auto run = add_run(db(), {.job_id = job_id, .begin_s = begin_s, .end_s = begin_s + 10});
    add_samples(db(), run, begin_s, begin_s + 10, 2, 200 * kMiB);
    add_phase(db(), run, {.path = "solve", .begin_s = begin_s + 1, .end_s = begin_s + 9});
    set_profile(job_id, name);
  }
  void set_profile(std::int64_t job_id, const std::string& name) {
    run_sql(db(), "UPDATE job SET admin_comment = 'sphase/1 profile=1000/" + name +
                      " asked=nodes:1' WHERE job_id = " + std::to_string(job_id));
  }

  LearnOutcome learned() {
    auto outcome = learn(db(), config, options, now_ns);
    REQUIRE_MESSAGE(outcome, (outcome ? "" : outcome.error()));
    return *outcome;
  }
  std::vector<std::string> keys() {
    auto table = read_advice_table(options.table);
    REQUIRE_MESSAGE(table, (table ? "" : table.error()));
    std::vector<std::string> names;
    for (const auto& [key, advice] : *table) names.push_back(key);
    std::sort(names.begin(), names.end());
    return names;
  }
};

using Keys = std::vector<std::string>;

}  // namespace

TEST_CASE("enough ended runs of a profile become an entry of the table") {
  LearnFixture fixture;
  for (int job = 1; job <= 3; ++job) fixture.add_ended(job, "p", job * 100);
  const auto outcome = fixture.learned();
  CHECK(outcome.jobs == 3);
  CHECK(outcome.observed == 3);
  CHECK(outcome.profiles == 1);
  CHECK(outcome.advised == 1);
  CHECK(outcome.entries == 1);
  CHECK(outcome.problems.empty());
  CHECK(fixture.keys() == Keys{"1000/p"});
}

TEST_CASE("without news nothing is read, made or written") {
  LearnFixture fixture;
  for (int job = 1; job <= 3; ++job) fixture.add_ended(job, "p", job * 100);
  fixture.learned();
  std::filesystem::last_write_time(fixture.options.table, {});
  const auto again = fixture.learned();
  CHECK(again.jobs == 0);
  CHECK(again.profiles == 0);
  CHECK(again.entries == -1);
  CHECK(std::filesystem::last_write_time(fixture.options.table) ==
        std::filesystem::file_time_type{});
}

TEST_CASE("a new run makes its own profile anew; the others keep their value") {
  LearnFixture fixture;
  for (int job = 1; job <= 3; ++job) fixture.add_ended(job, "a", job * 100);
  for (int job = 4; job <= 6; ++job) fixture.add_ended(job, "b", job * 100);
  fixture.learned();
  const auto before = find_advice(fixture.options.table, "1000/a", fixture.now_ns / kSecond);
  fixture.now_ns += 1000 * kSecond;
  fixture.add_ended(7, "b", 700);
  const auto outcome = fixture.learned();
  CHECK(outcome.jobs == 1);
  CHECK(outcome.profiles == 1);
  CHECK(outcome.entries == 2);
  const auto a = find_advice(fixture.options.table, "1000/a", fixture.now_ns / kSecond);
  const auto b = find_advice(fixture.options.table, "1000/b", fixture.now_ns / kSecond);
  REQUIRE((before && *before && a && *a && b && *b));
  CHECK((*a)->head.made_s == (*before)->head.made_s);
  CHECK((*b)->head.runs == 4);
}

TEST_CASE("too few runs are kept for later and give no entry") {
  LearnFixture fixture;
  fixture.add_ended(1);
  const auto outcome = fixture.learned();
  CHECK(outcome.observed == 1);
  CHECK(outcome.advised == 0);
  CHECK(outcome.entries == 0);
  CHECK(fixture.keys().empty());
}

TEST_CASE("a job of no profile is skipped, and one that runs is left for later") {
  LearnFixture fixture;
  add_job(fixture.db(), {.job_id = 1});
  add_run(fixture.db(), {.job_id = 1});
  add_job(fixture.db(), {.job_id = 2, .end_s = {}, .state = "RUNNING"});
  add_run(fixture.db(), {.job_id = 2, .end_s = {}, .last_s = 5});
  const auto outcome = fixture.learned();
  CHECK(outcome.jobs == 1);
  CHECK(outcome.observed == 0);
  CHECK(outcome.skipped == 1);
}

TEST_CASE("a start that gets its record later is not counted twice") {
  LearnFixture fixture;
  const auto run = add_run(fixture.db(), {});
  run_sql(fixture.db(), "UPDATE run SET profile = 'mine' WHERE run_id = " + std::to_string(run));
  add_samples(fixture.db(), run, 0, 10, 1);
  CHECK(fixture.learned().observed == 1);
  add_job(fixture.db(), {});
  CHECK(fixture.learned().observed == 1);
  auto jobs = load_observed(fixture.db(), "1000/mine");
  REQUIRE(jobs);
  REQUIRE(jobs->size() == 1);
  CHECK(jobs->front().submit_s == kStartS);
}

TEST_CASE("a run that moves to another profile leaves the first one") {
  LearnFixture fixture;
  for (int job = 1; job <= 3; ++job) fixture.add_ended(job, "a", job * 100);
  fixture.learned();
  fixture.set_profile(3, "b");
  const auto outcome = fixture.learned();
  CHECK(outcome.profiles == 2);
  CHECK(load_observed(fixture.db(), "1000/a")->size() == 2);
  CHECK(fixture.keys().empty());
}

TEST_CASE("every start of a requeued job is observed") {
  LearnFixture fixture;
  add_job(fixture.db(), {.end_s = 20, .state = "REQUEUED"});
  add_job(fixture.db(), {.restart_count = 1, .begin_s = 100, .end_s = 120});
  add_run(fixture.db(), {.begin_s = 1, .end_s = 19});
  add_run(fixture.db(), {.restart_count = 1, .begin_s = 101, .end_s = 119});
  fixture.set_profile(123, "p");
  CHECK(fixture.learned().observed == 2);
  CHECK(load_observed(fixture.db(), "1000/p")->size() == 2);
}

TEST_CASE("the leader of an array is learned by itself, without the other tasks") {
  LearnFixture fixture;
  for (const int job : {10, 11, 12}) {
    add_job(fixture.db(), {.job_id = job, .array_job_id = 10, .array_task_id = job - 10});
    add_run(fixture.db(), {.job_id = job, .array_job_id = 10, .array_task_id = job - 10});
    fixture.set_profile(job, "p");
  }
  CHECK(fixture.learned().observed == 3);
  CHECK(load_observed(fixture.db(), "1000/p")->size() == 3);
}

TEST_CASE("a missing table is made of everything, a damaged one too") {
  LearnFixture fixture;
  for (int job = 1; job <= 3; ++job) fixture.add_ended(job, "p", job * 100);
  fixture.learned();
  std::filesystem::remove(fixture.options.table);
  CHECK(fixture.learned().entries == 1);
  fixture.folder().write("advice.cdb", "not a table");
  const auto outcome = fixture.learned();
  CHECK(outcome.entries == 1);
  CHECK(says(outcome.problems, "all advice is made anew"));
  CHECK(fixture.keys() == Keys{"1000/p"});
}

TEST_CASE("where the table cannot be written, the next call makes the same profiles") {
  LearnFixture fixture;
  for (int job = 1; job <= 3; ++job) fixture.add_ended(job, "p", job * 100);
  const std::string table = fixture.options.table;
  fixture.options.table = fixture.folder() / "none/advice.cdb";
  CHECK_FALSE(learn(fixture.db(), fixture.config, fixture.options, fixture.now_ns));
  CHECK(touched_profiles(fixture.db())->size() == 1);
  fixture.options.table = table;
  const auto outcome = fixture.learned();
  CHECK(outcome.observed == 0);
  CHECK(outcome.entries == 1);
  CHECK(touched_profiles(fixture.db())->empty());
}

TEST_CASE("a forgotten profile leaves the table") {
  LearnFixture fixture;
  for (int job = 1; job <= 3; ++job) fixture.add_ended(job, "p", job * 100);
  fixture.learned();
  REQUIRE(forget_profile(fixture.db(), "1000/p", fixture.now_ns));
  CHECK(fixture.learned().entries == 0);
  CHECK(fixture.keys().empty());
}

TEST_CASE("one call looks at a bounded number of jobs and says that there are more") {
  LearnFixture fixture;
  for (int job = 1; job <= 5; ++job) fixture.add_ended(job, "p", job * 100);
  fixture.options.jobs_most = 2;
  auto outcome = fixture.learned();
  CHECK(outcome.jobs == 2);
  CHECK(outcome.more);
  fixture.options.jobs_most = 100;
  outcome = fixture.learned();
  CHECK(outcome.jobs == 3);
  CHECK_FALSE(outcome.more);
}

TEST_CASE("learning from one new job costs the same whatever the history") {
  LearnFixture fixture;
  for (int job = 1; job <= 300; ++job) fixture.add_ended(job, "p" + std::to_string(job % 100), job);
  fixture.learned();
  fixture.add_ended(1000, "p1", 1000);
  const auto outcome = fixture.learned();
  CHECK(outcome.jobs == 1);
  CHECK(outcome.profiles == 1);
}

TEST_CASE("while another process learns on the database, this one waits, then gives up") {
  LearnFixture fixture;
  auto lock = FileLock::take(fixture.path() + ".learn");
  REQUIRE(lock);
  // As good as another process: locks belong to an open file (flock(2)).
  fixture.options.lock_wait_ms = 1;
  auto outcome = learn(fixture.db(), fixture.config, fixture.options, fixture.now_ns);
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().find("locked by another process") != std::string::npos);
}

TEST_CASE("a configuration that is newer than the table is noticed") {
  const TempFolder folder;
  const auto conf = folder.write("sphase.conf", "");
  CHECK(older_than(folder / "advice.cdb", conf));
  const auto table = folder.write("advice.cdb", "");
  using Time = std::filesystem::file_time_type;
  std::filesystem::last_write_time(conf, Time{} + std::chrono::seconds(10));
  std::filesystem::last_write_time(table, Time{} + std::chrono::seconds(20));
  CHECK_FALSE(older_than(table, conf));
  std::filesystem::last_write_time(conf, Time{} + std::chrono::seconds(30));
  CHECK(older_than(table, conf));
  CHECK_FALSE(older_than(table, folder / "none.conf"));
}
