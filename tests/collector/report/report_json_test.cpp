// Source: cli/report_json.cpp.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "collector/report/report_print.h"
#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;
using nlohmann::json;

TEST_CASE("JSON holds everything, with null for what is not known") {
  ClusterFixture cluster;
  const JobSpec job;
  add_job(cluster.db(), job);
  add_allocation(cluster.db(), job, {"n1", "n2"}, 0, 10);
  const auto run = add_run(cluster.db(), {.node_tasks = 2});
  add_samples(cluster.db(), run, 0, 10, 2);
  for (int task = 0; task < 2; ++task) {
    add_phase(cluster.db(), run,
              {.path = "solve",
               .begin_s = 1,
               .end_s = 5.0 + task,
               .cpu_s = 4.0 + 4 * task,
               .task = task});
  }
  run_sql(cluster.db(),
          "INSERT INTO attribute VALUES(" + std::to_string(run) + ", 0, 'solve', 'cells', '1e6')");
  const json report = json::parse(report_json(cluster.load("123"), {}));
  const json& start = report["starts"][0];
  CHECK(start["job"]["job_id"] == 123);
  CHECK(start["job"]["state"] == "COMPLETED");
  CHECK(start["job"]["qos"].is_null());
  CHECK(start["allocations"][0]["nodes"][1]["node"] == "n2");
  CHECK(start["nodes"][1]["state"] == "idle");
  CHECK(start["attributes"][0]["key"] == "solve/cells");
  const json* solve = nullptr;
  for (const auto& row : start["rows"]) {
    if (row["name"] == "solve") solve = &row;
  }
  REQUIRE(solve != nullptr);
  CHECK((*solve)["kind"] == "task phase");
  CHECK((*solve)["cpu_time_ns"] == ns(12));
  CHECK((*solve)["imbalance_cpu_ratio"].get<double>() == doctest::Approx(8.0 / 6));
  CHECK((*solve)["imbalance_wall_ratio"].get<double>() == doctest::Approx(5.0 / 4.5));
  CHECK((*solve)["io_write_call_bytes"].is_null());
  CHECK((*solve)["flags"] == json::array());
  CHECK_FALSE(solve->contains("nodes"));
}

TEST_CASE("suspensions, reasons for waiting and helpers are in the JSON") {
  ClusterFixture cluster;
  add_job(cluster.db(), {});
  add_job(cluster.db(), {.job_id = 200, .submit_s = 3, .begin_s = 4, .end_s = 5});
  const auto key = "'c1',123," + std::to_string(kStartS) + ",0,";
  run_sql(cluster.db(),
          "UPDATE job SET helper_of = 123 WHERE job_id = 200;"
          " INSERT INTO suspension VALUES(" +
              key + std::to_string(kStartS + 2) + ",NULL); INSERT INTO wait_reason VALUES(" + key +
              std::to_string(kStartS) + "," + std::to_string(kStartS + 1) + ",'Resources')");
  const json report = json::parse(report_json(cluster.load("123"), {}));
  const json& start = report["starts"][0];
  CHECK(start["suspensions"][0]["begin_ns"] == at(2));
  CHECK(start["suspensions"][0]["end_ns"].is_null());
  CHECK(start["waits"][0]["reason"] == "Resources");
  CHECK(start["waits"][0]["end_ns"] == at(1));
  CHECK(start["job"]["helpers"] == json::array({200}));
  const json helper = json::parse(report_json(cluster.load("200"), {}));
  CHECK(helper["starts"][0]["job"]["helper_of"] == 123);
}

TEST_CASE("the original request is that of the audit line, or else of the record") {
  ClusterFixture cluster;
  add_job(cluster.db(), {});
  run_sql(cluster.db(),
          "UPDATE job SET requested_memory = '500M per CPU',"
          " requested_time_limit_s = 600");
  const auto original = [&] {
    return json::parse(
        report_json(cluster.load("123"), {}))["starts"][0]["job"]["original_request"];
  };
  CHECK(original()["nodes"] == 2);
  CHECK(original()["memory"] == "500M per CPU");
  CHECK(original()["time_limit_s"] == 600);
  CHECK(original()["changed_at_submission"] == false);
  run_sql(cluster.db(),
          "UPDATE job SET admin_comment = 'sphase/1 profile=1000/p mode=apply from=job"
          " advice=found runs=3 made=1 asked=nodes:4,tasks:4,memory:8192,time:60"
          " set=nodes:2,memory:5120 would=- left=-'");
  CHECK(original()["nodes"] == 4);
  CHECK(original()["tasks"] == 4);
  CHECK(original()["memory"] == "8192M per node");
  CHECK(original()["time_limit_s"] == 3600);
  CHECK(original()["changed_at_submission"] == true);
}

TEST_CASE("nodes of every row can be asked for") {
  ClusterFixture cluster;
  add_samples(cluster.db(), add_run(cluster.db(), {}), 0, 10, 2);
  const json report = json::parse(report_json(cluster.load("123"), {.nodes = true}));
  CHECK(report["starts"][0]["rows"][1]["nodes"][0]["node"] == "n1");
}

TEST_CASE("JSON is ASCII and valid, whatever bytes a name holds") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {.job_name = "\xff\xfe\x1b[31m\"quoted\"\n"});
  add_phase(cluster.db(), run, {.path = "Größe\x80\x07", .begin_s = 1, .end_s = 2});
  const std::string text = report_json(cluster.load("123"), {});
  for (const char c : text) {
    REQUIRE((c == '\n' || (c >= 0x20 && c < 0x7f)));
  }
  CHECK_FALSE(json::parse(text, nullptr, false).is_discarded());
}
