#include "collector/ingest/shipment.h"

#include <doctest/doctest.h>

#include "tests/collector/segments.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

using Columns = std::vector<std::pair<std::string, std::vector<Cell>>>;

Columns whole() {
  return {{"cluster", {"c1", "c2"}}, {"step", {"0", "batch"}},  {"node", {"n1", "n2"}},
          {"job_id", {1, 2}},        {"restart_count", {0, 3}}, {"start_ns", {5, 6}}};
}

}  // namespace

TEST_CASE("a run's name is taken from its own row") {
  const Segment runs = segment(whole());
  CHECK(run_name(runs, 0) == RunName{"c1", "0", "n1", 1, 0, 5});
  CHECK(run_name(runs, 1) == RunName{"c2", "batch", "n2", 2, 3, 6});
}

TEST_CASE("a run of which a column is missing, NULL or of another type has no name") {
  for (std::size_t i = 0; i < whole().size(); ++i) {
    Columns columns = whole();
    columns[i].second[1] = Cell();
    CHECK(run_name(segment(columns), 0));
    CHECK_FALSE(run_name(segment(columns), 1));
    columns[i].second = i < 3 ? std::vector<Cell>{7, 7} : std::vector<Cell>{"x", "x"};
    CHECK_FALSE(run_name(segment(columns), 0));
    columns[i].second = {0.5, 0.5};
    CHECK_FALSE(run_name(segment(columns), 0));
    columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(i));
    CHECK_FALSE(run_name(segment(columns), 0));
  }
}
