// Source: collector/page/page_data.cpp and the parts that it puts together.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "collector/page/page.h"
#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;
using nlohmann::json;

namespace {

json data_of(ClusterFixture& cluster, const std::string& job = "123") {
  return json::parse(page_data(cluster.load(job)));
}

/// Two nodes, one of them idle; a phase of two tasks.
void add_two_nodes(ClusterFixture& cluster) {
  const JobSpec job;
  add_job(cluster.db(), job);
  add_allocation(cluster.db(), job, {"n1", "n2"}, 0, 10);
  const auto run = add_run(cluster.db(), {.node_tasks = 2});
  add_samples(cluster.db(), run, 0, 10, 2);
  for (int task = 0; task < 2; ++task) {
    add_phase(cluster.db(), run,
              {.path = "solve", .begin_s = 1, .end_s = 5.0 + task, .cpu_s = 4, .task = task});
  }
}

const json& row_field(const json& start, const std::string& name, const std::string& field) {
  const auto& table = start["table"];
  std::size_t column = 0;
  while (table["fields"][column] != field) ++column;
  for (const auto& row : table["summary"]) {
    if (start["texts"][row[2].get<std::size_t>()] == name) return row[column];
  }
  FAIL("no row " << name);
  return start;
}

}  // namespace

TEST_CASE("a page has what the timeline has, in its units") {
  ClusterFixture cluster;
  add_two_nodes(cluster);
  const auto timelines = cluster.load("123");
  const json data = json::parse(page_data(timelines));
  const json& start = data["starts"][0];
  CHECK(start["job"]["job_id"] == 123);
  CHECK(start["job"]["qos"].is_null());
  CHECK(start["begin_us"] == kStart / 1000);
  CHECK(start["length_us"] == 10'000'000);
  CHECK(start["nodes"][1]["node"] == "n2");
  CHECK(start["nodes"][1]["state"] == "idle");
  CHECK(start["nodes"][0]["cpus"] == 4);
  CHECK(start["allocations"][0]["node_count"] == 2);
  CHECK(start["spans"][0] == json({0, 0, 10'000'000, 4, 1000 * kMiB}));
  const UsageRow& solve = row_named(timelines[0].rows, "solve");
  CHECK(row_field(start, "solve", "time_us") == solve.time_ns / 1000);
  CHECK(row_field(start, "solve", "cpu_time_s") == 8.0);
  CHECK(row_field(start, "solve", "wasted_node_s") == *solve.wasted_node_s);
  CHECK(row_field(start, "solve", "written_bytes").is_null());
}

TEST_CASE("a bar has the times, tasks and CPU time of its phase") {
  ClusterFixture cluster;
  add_two_nodes(cluster);
  const json data = data_of(cluster);
  const json& start = data["starts"][0];
  REQUIRE(start["lanes"]["bars"].size() == 1);
  const json& bar = start["lanes"]["bars"][0];
  CHECK(start["texts"][bar[2].get<std::size_t>()] == "solve");
  CHECK(bar[5] == 1'000'000);
  CHECK(bar[6] == 5'000'000);
  CHECK(bar[8] == 2);
  CHECK(bar[10] == 8'000'000);
  CHECK(bar[12].is_null());
}

TEST_CASE("lines hold the samples, and the waste under its line is that of the table") {
  ClusterFixture cluster;
  add_two_nodes(cluster);
  const json data = data_of(cluster);
  const json& start = data["starts"][0];
  const json& cpus = start["series"]["nodes"][0]["cpus"];
  CHECK(cpus["v"][0] == 2.0);
  CHECK(cpus["v"].back().is_null());
  CHECK(start["series"]["nodes"][0]["memory"]["v"][3] == 100 * kMiB);
  const json& wasted = start["series"]["sum"]["wasted"];
  double area = 0;
  for (std::size_t i = 0; i + 1 < wasted["t"].size(); ++i) {
    if (wasted["v"][i].is_null()) continue;
    area += wasted["v"][i].get<double>() * wasted["t"][i + 1].get<double>() / 1e6;
  }
  CHECK(area ==
        doctest::Approx(row_field(start, "job", "wasted_node_s").get<double>()).epsilon(1e-3));
}

TEST_CASE("events that were counted go with the bar of their phase") {
  ClusterFixture cluster;
  add_two_nodes(cluster);
  add_counter(cluster.db(), 1, {.path = "solve", .number = 1, .event = "PAPI_TOT_INS", .value = 7});
  const json data = data_of(cluster);
  CHECK(data["starts"][0]["lanes"]["events"] == json({"PAPI_TOT_INS"}));
  CHECK(data["starts"][0]["lanes"]["bars"][0][12] == json({7.0}));
}

TEST_CASE("text of a job cannot end the script element that holds the data") {
  ClusterFixture cluster;
  add_job(cluster.db(), {});
  const auto run = add_run(cluster.db(), {});
  const std::string hostile = "</script><!-- & \xe2\x80\xa8\xe2\x80\xa9 \xff <script>alert(1)";
  add_phase(cluster.db(), run, {.path = hostile, .begin_s = 1, .end_s = 2});
  add_notice(cluster.db(), "n1", "limit", "<b>&amp;</b>");
  const std::string data = page_data(cluster.load("123"));
  CHECK(data.find_first_of("<>&") == std::string::npos);
  for (const char c : data) REQUIRE((c >= 0x20 && c < 0x7f));
  const json parsed = json::parse(data);
  const auto& texts = parsed["starts"][0]["texts"];
  CHECK(std::any_of(texts.begin(), texts.end(), [](const json& text) {
    return text.get<std::string>().starts_with("</script><!-- & \u2028\u2029 ");
  }));
}

TEST_CASE("a text that is very long is cut at a character") {
  ClusterFixture cluster;
  add_job(cluster.db(), {});
  std::string name;
  for (int i = 0; i < 1000; ++i) name += "ä";
  add_phase(cluster.db(), add_run(cluster.db(), {}), {.path = name, .begin_s = 1, .end_s = 2});
  const std::string data = page_data(cluster.load("123"), {.text_bytes = 101});
  CHECK(data.find("\\ufffd") == std::string::npos);
  CHECK(data.find("\\u00e4\\u2026") != std::string::npos);
}

TEST_CASE("a job that has not started, or told nothing, is a page too") {
  ClusterFixture cluster;
  add_job(cluster.db(), {.begin_s = {}, .end_s = {}, .state = "PENDING"});
  const json data = data_of(cluster);
  CHECK(data["starts"][0]["job"]["start_s"].is_null());
  CHECK(data["starts"][0]["lanes"]["runs"].empty());
  CHECK(data["starts"][0]["series"]["sum"]["cpus"]["t"].empty());
  CHECK(json::parse(page_data({}))["starts"].empty());
}

TEST_CASE("each start of a requeued job is an entry") {
  ClusterFixture cluster;
  for (int restart = 0; restart < 2; ++restart) {
    const double shift = 100.0 * restart;
    add_job(cluster.db(), {.restart_count = restart, .begin_s = shift, .end_s = shift + 10});
    add_run(cluster.db(), {.restart_count = restart, .begin_s = shift, .end_s = shift + 10});
  }
  const json data = data_of(cluster);
  REQUIRE(data["starts"].size() == 2);
  CHECK(data["starts"][1]["job"]["restart_count"] == 1);
  CHECK(data["starts"][1]["lanes"]["runs"][0][2] == 0);
}

TEST_CASE("clocks, notices and what is missing are told") {
  ClusterFixture cluster;
  add_two_nodes(cluster);
  add_notice(cluster.db(), "n2", "not-active", "no node.db");
  auto timelines = cluster.load("123");
  timelines[0].clocks = {{"n1", -1'998'000'000, 400'000}};
  const json data = json::parse(page_data(timelines));
  const json& start = data["starts"][0];
  CHECK(start["clocks"][0] == json({0, -1'998'000.0, 400.0}));
  CHECK(start["notices"][0][0] == 1'000'000);
  CHECK(start["notices"][0][1] == 1);
  CHECK(start["missing"][0].get<std::string>().find("not active on n2") != std::string::npos);
}

TEST_CASE("a node that keeps its CPUs over a resize has one span") {
  ClusterFixture cluster;
  const JobSpec job;
  add_job(cluster.db(), job);
  add_allocation(cluster.db(), job, {"n1", "n2"}, 0, 4, "RESIZING");
  add_allocation(cluster.db(), job, {"n1"}, 4, 10);
  add_run(cluster.db(), {});
  const json data = data_of(cluster);
  const json& spans = data["starts"][0]["spans"];
  REQUIRE(spans.size() == 2);
  CHECK(spans[0] == json({0, 0, 10'000'000, 4, 1000 * kMiB}));
  CHECK(spans[1] == json({1, 0, 4'000'000, 4, 1000 * kMiB}));
}
