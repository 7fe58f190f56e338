// Source: collector/page/page_data.cpp, with a lot of data.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "collector/page/page.h"
#include "tests/collector/page/big_timeline.h"

using namespace sphase;
using namespace sphase::testing;

TEST_CASE("512 nodes with 2000 samples and 50 phases each are a page of less than 10 MB") {
  const Timeline timeline = big_timeline({.nodes = 512, .samples = 2000, .phases = 50});
  const std::string html = page_html(page_data({timeline}));
  CHECK(html.size() <= 10'000'000);
  CHECK(html.size() > 1'000'000);
}

TEST_CASE("a limit on bytes is kept, whatever the others allow") {
  const Timeline timeline = big_timeline({.nodes = 16, .samples = 500, .phases = 20});
  PageLimits limits;
  limits.bytes = 100'000;
  limits.points = limits.series_points = 10'000'000;
  CHECK(page_data({timeline}, limits).size() <= limits.bytes);
}

TEST_CASE("many starts share what one page may hold") {
  const std::vector<Timeline> starts(20, big_timeline({.nodes = 8, .samples = 1500, .phases = 20}));
  const PageLimits limits = {.points = 30'000};
  const auto data = nlohmann::json::parse(page_data(starts, limits));
  std::size_t points = 0;
  for (const auto& start : data["starts"]) {
    for (const auto& node : start["series"]["nodes"]) points += node["cpus"]["t"].size();
  }
  CHECK(points <= limits.points);
  CHECK(points > limits.points / 20);
}

TEST_CASE("the highest sample of every node is in the page") {
  const Timeline timeline = big_timeline({.nodes = 4, .samples = 20'000, .phases = 1});
  const auto data = nlohmann::json::parse(page_data({timeline}, {.points = 3000}));
  const auto& nodes = data["starts"][0]["series"]["nodes"];
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::int64_t most = 0, drawn = 0;
    for (const auto& sample : timeline.runs[i].samples.samples()) {
      most = std::max(most, sample.memory_bytes.value_or(0));
    }
    for (const auto& value : nodes[i]["memory"]["v"]) {
      if (!value.is_null()) drawn = std::max(drawn, value.get<std::int64_t>());
    }
    CHECK(drawn == most);
  }
}
