#include "collector/http/job_search.h"

#include <nlohmann/json.hpp>

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

const Viewer kAlice{1000, false}, kOperator{0, true};

/// Of alice: 7, which ended, 20_3, and 9, of which only a run tells; of 1001: 8.
struct SearchFixture : ClusterFixture {
  SearchFixture() {
    add_job(db(), {.job_id = 7});
    add_job(db(), {.job_id = 23,
                   .submit_s = 1,
                   .begin_s = 5,
                   .end_s = {},
                   .state = "RUNNING",
                   .array_job_id = 20,
                   .array_task_id = 3});
    add_run(db(), {.job_id = 23, .begin_s = 6});
    add_run(db(), {.job_id = 9, .begin_s = 50, .job_name = "Other"});
    add_run(db(), {.job_id = 9, .begin_s = 51, .node = "n2", .job_name = "Other"});
    add_run(db(), {.job_id = 8, .begin_s = 70, .uid = 1001, .job_name = "secret"});
  }
  std::vector<std::int64_t> find(const Viewer& viewer, std::string_view text,
                                 std::size_t most = kMostJobs) {
    const auto found = search_jobs(db(), viewer, text, most);
    REQUIRE_MESSAGE(found, (found ? "" : found.error()));
    std::vector<std::int64_t> ids;
    for (const auto& one : *found) ids.push_back(one.job.job_id);
    return ids;
  }
};

using Ids = std::vector<std::int64_t>;

}  // namespace

TEST_CASE_FIXTURE(SearchFixture, "jobs are listed newest first, each start once, one's own alone") {
  CHECK(find(kAlice, "") == Ids{9, 23, 7});
  CHECK(find(kOperator, "") == Ids{8, 9, 23, 7});
  CHECK(find(kOperator, "", 2) == Ids{8, 9});
  CHECK(find({77, false}, "") == Ids{});
}

TEST_CASE_FIXTURE(SearchFixture, "a job is found by number, name, user and state") {
  CHECK(find(kAlice, "7") == Ids{7});
  CHECK(find(kAlice, "20_3") == Ids{23});
  CHECK(find(kAlice, "20") == Ids{23});
  CHECK(find(kAlice, "OTH") == Ids{9});
  CHECK(find(kOperator, "1001") == Ids{8});
  CHECK(find(kOperator, "alice running") == Ids{23});
  CHECK(find(kAlice, "secret") == Ids{});
  CHECK(find(kAlice, "alice nothing") == Ids{});
}

TEST_CASE_FIXTURE(SearchFixture, "words are text, whatever they look like") {
  for (const char* text : {"%", "_", "'", "\" OR 1 --", "*", "7 OR 1=1", "\\"}) {
    CAPTURE(text);
    CHECK(find(kAlice, text) == Ids{});
  }
  CHECK(find(kAlice, std::string(100'000, 'a')) == Ids{});
  CHECK(search_words("a b c d e f g h i j").size() == 8);
}

TEST_CASE_FIXTURE(SearchFixture, "the list has what is known, and null for what is not") {
  run_sql(db(), "UPDATE job SET name = 'x' || char(27) || '<b>'");
  const auto found = search_jobs(db(), kAlice, "20_3", 1);
  REQUIRE(found);
  const auto json = nlohmann::json::parse(jobs_json(*found, kAlice));
  CHECK(json["all_users"] == false);
  const auto& job = json["jobs"][0];
  CHECK(job["id"] == "20_3");
  CHECK(job["name"] == "x\\x1b<b>");
  CHECK(job["begin_s"] == kStartS + 5);
  CHECK(job["end_s"].is_null());
}
