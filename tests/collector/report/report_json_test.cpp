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
