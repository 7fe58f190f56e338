#include "collector/answer/answer.h"

#include <doctest/doctest.h>

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

const Viewer kOwner{1000, false}, kOther{1001, false}, kOperator{0, true};

/// Job 123 of user 1000 and job 124 of user 1001.
void two_users(ClusterFixture& cluster) {
  for (const auto& [job, uid] : {std::pair{123, 1000}, {124, 1001}}) {
    const auto run = add_run(cluster.db(), {.job_id = job, .uid = uid});
    add_samples(cluster.db(), run, 0, 10, 1);
    add_phase(cluster.db(), run, {.path = "solve", .begin_s = 1, .end_s = 3, .cpu_s = 2});
  }
}

Question question(const std::string& command, std::vector<std::string> jobs = {},
                  const std::string& format = "text", const std::string& table = "") {
  Question asked;
  asked.command = command;
  asked.jobs = std::move(jobs);
  asked.format = format;
  asked.table = table;
  return asked;
}

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("a question comes back from its text") {
  Question asked = question("report", {"1", "2_3"}, "csv", "sample");
  asked.cluster = "c\"1";
  asked.user = "al\xffice";
  asked.instances = asked.all = true;
  const auto read = parse_question(text_of(asked));
  REQUIRE(read);
  CHECK(read->command == "report");
  CHECK(read->jobs == asked.jobs);
  CHECK(read->cluster == asked.cluster);
  CHECK(read->format == "csv");
  CHECK(read->table == "sample");
  CHECK(read->instances);
  CHECK_FALSE(read->nodes);
  CHECK(read->all);
}

TEST_CASE("what is no question is none") {
  for (const char* text :
       {"", "{", "[]", "1", "{\"command\":1}", "{\"jobs\":{}}", "{\"jobs\":[1]}",
        "{\"all\":\"yes\"}", "{\"user\":null}", "\xff", "{\"command\":\"report\"}x"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_question(text));
  }
  std::string many = "{\"jobs\":[\"1\"";
  for (int i = 0; i < 1000; ++i) many += ",\"1\"";
  CHECK_FALSE(parse_question(many + "]}"));
}

TEST_CASE("users see their own, operators all; another's job is like one that is not there") {
  ClusterFixture cluster;
  two_users(cluster);
  for (const char* format : {"text", "json", "csv", "html"}) {
    CAPTURE(format);
    CHECK(answer_whole(cluster.db(), kOwner, question("report", {"123"}, format)).code == 0);
    CHECK(answer_whole(cluster.db(), kOperator, question("report", {"124"}, format)).code == 0);
    const Reply others = answer_whole(cluster.db(), kOwner, question("report", {"124"}, format));
    const Reply none = answer_whole(cluster.db(), kOwner, question("report", {"999"}, format));
    CHECK(others.code == 1);
    CHECK(others.text == "there is no job 124 of yours");
    CHECK(none.text == "there is no job 999 of yours");
  }
  CHECK(answer_whole(cluster.db(), kOwner, question("jobs")).text.find("124") == std::string::npos);
  CHECK(answer_whole(cluster.db(), kOperator, question("jobs")).text.find("124") !=
        std::string::npos);
}

TEST_CASE("rows are exported to their owner alone") {
  ClusterFixture cluster;
  two_users(cluster);
  const auto rows = [&](const Viewer& viewer, std::vector<std::string> jobs) {
    return answer_whole(cluster.db(), viewer,
                        question("export", std::move(jobs), "jsonl", "sample"));
  };
  CHECK(lines_in(rows(kOwner, {}).text) == 11);
  CHECK(lines_in(rows(kOperator, {}).text) == 22);
  CHECK(lines_in(rows(kOther, {"124"}).text) == 11);
  CHECK(rows(kOther, {"123"}).text == "nothing was recorded of job 123");
  CHECK(rows(kOther, {"999"}).text == "nothing was recorded of job 999");
}

TEST_CASE("a wrong question is told, with the exit code of wrong usage") {
  ClusterFixture cluster;
  CHECK(answer_whole(cluster.db(), kOperator, question("drop")).code == 2);
  CHECK(answer_whole(cluster.db(), kOperator, question("report", {"x"})).code == 2);
  CHECK(answer_whole(cluster.db(), kOperator, question("report")).code == 2);
  CHECK(answer_whole(cluster.db(), kOperator, question("export", {}, "jsonl", "sqlite_schema"))
            .code == 2);
}

TEST_CASE("what is too long for one reply is a sentence") {
  ClusterFixture cluster;
  two_users(cluster);
  const Question samples = question("export", {}, "jsonl", "sample");
  const Reply reply = answer_whole(cluster.db(), kOperator, samples, 1000);
  CHECK(reply.code == 1);
  CHECK(reply.text.find("ask for fewer jobs") != std::string::npos);
}
