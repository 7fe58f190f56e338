#include "collector/http/metrics.h"

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

TEST_CASE("nodes, jobs and what was given up are counted") {
  ClusterFixture cluster;
  const std::int64_t now_ns = at(1000);
  run_sql(cluster.db(), "INSERT INTO shipper VALUES('n1', 'a', 1, " + std::to_string(at(0)) +
                            ", 5, NULL), ('n1', 'b', 1, " + std::to_string(at(990)) +
                            ", 2, NULL), ('n2', 'c', 1, " + std::to_string(at(900)) +
                            ", NULL, NULL)");
  add_job(cluster.db(), {.job_id = 7});
  add_job(cluster.db(), {.job_id = 8, .end_s = {}, .state = "RUNNING"});
  add_run(cluster.db(), {.job_id = 8, .end_s = {}});
  add_run(cluster.db(), {.job_id = 9});
  const auto metrics = load_metrics(cluster.db(), cluster.path(), now_ns);
  REQUIRE_MESSAGE(metrics, (metrics ? "" : metrics.error()));
  CHECK(metrics->nodes_known == 2);
  CHECK(metrics->nodes_silent == 1);
  CHECK(metrics->rows_deleted == 7);
  CHECK(metrics->jobs_known == 3);
  CHECK(metrics->jobs_running == 1);
  CHECK(metrics->database_bytes > 0);
}

TEST_CASE("the text is OpenMetrics: types before samples, counters with _total, an end") {
  Metrics metrics;
  metrics.requests = 42;
  const std::string text = metrics_text(metrics);
  CHECK(text.ends_with("\n# EOF\n"));
  CHECK(text.find("# TYPE sphase_http_requests counter\n") != std::string::npos);
  CHECK(text.find("\nsphase_http_requests_total 42\n") != std::string::npos);
  CHECK(text.find("# UNIT sphase_database_bytes bytes\n") != std::string::npos);
  CHECK(text.find("\n\n") == std::string::npos);
}
