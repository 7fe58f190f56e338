// Parts of the page's data. Times are us after the beginning of the start unless the name says
// otherwise: they are exact in JavaScript (below 2^53) for any job, where ns are not.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/page/page.h"
#include "collector/page/steps.h"

namespace sphase {

using Json = nlohmann::ordered_json;

template <typename T>
Json json_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// Texts that occur often, each once.
class Texts {
 public:
  explicit Texts(std::size_t most_bytes) : most_bytes_(most_bytes) {}
  std::size_t index(const std::string& text);
  const std::vector<std::string>& all() const { return texts_; }

 private:
  std::size_t most_bytes_;
  std::unordered_map<std::string, std::size_t> known_;
  std::vector<std::string> texts_;
};

/// Cut at a character, with … at the end.
std::string cut_text(const std::string& text, std::size_t most_bytes);

/// What all parts of one start need.
struct PageStart {
  const Timeline& timeline;
  PageLimits limits;
  Texts texts;
  std::vector<std::string> nodes;  // by name as people sort it
  std::unordered_map<std::string, std::size_t> node_index;

  PageStart(const Timeline& timeline, const PageLimits& limits);
  std::int64_t us(std::int64_t time_ns) const;
  Json us(const Maybe& time_ns) const { return time_ns ? Json(us(*time_ns)) : Json(nullptr); }
  std::size_t node(const std::string& name) const { return node_index.at(name); }
};

Json job_json(const PageStart& start);          // page_job.cpp
Json nodes_json(const PageStart& start);        // the same
Json allocations_json(const PageStart& start);  // the same
Json spans_json(const PageStart& start);        // the same
Json notices_json(PageStart& start);            // the same
Json clocks_json(const PageStart& start);       // the same
Json attributes_json(const PageStart& start);   // the same
Json lanes_json(PageStart& start);              // page_lanes.cpp: runs, bars, gaps, events
Json series_json(const PageStart& start);       // page_series.cpp
Json rows_json(PageStart& start);               // page_rows.cpp: the phase table

}  // namespace sphase
