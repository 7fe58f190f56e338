#include <algorithm>
#include <set>

#include "collector/page/flag_words.h"
#include "collector/page/page_json.h"
#include "collector/timeline/node_names.h"

namespace sphase {
namespace {

constexpr int kPageVersion = 1;

/// Nodes that anything is said of.
std::vector<std::string> node_names(const Timeline& timeline) {
  std::set<std::string> names;
  for (const auto& use : timeline.nodes) names.insert(use.node);
  for (const auto& run : timeline.runs) names.insert(run.node);
  for (const auto& notice : timeline.notices) names.insert(notice.node);
  for (const auto& clock : timeline.clocks) names.insert(clock.node);
  for (const auto& allocation : timeline.allocations) {
    for (const auto& node : allocation.nodes) names.insert(node.node);
  }
  std::vector<std::string> sorted(names.begin(), names.end());
  std::stable_sort(sorted.begin(), sorted.end(), node_less);
  return sorted;
}

Json missing_json(const PageStart& start) {
  Json missing = Json::array();
  const auto& all = start.timeline.missing;
  for (const auto& sentence : all) {
    if (missing.size() == start.limits.texts) break;
    missing.push_back(cut_text(sentence, 4 * start.limits.text_bytes));
  }
  if (all.size() > missing.size()) {
    missing.push_back("and " + std::to_string(all.size() - missing.size()) + " more");
  }
  return missing;
}

Json start_json(const Timeline& timeline, const PageLimits& limits) {
  PageStart start(timeline, limits);
  Json json = {{"job", job_json(start)},
               {"begin_us", timeline.begin_ns / 1000},
               {"length_us", start.us(timeline.end_ns)},
               {"running", timeline.running},
               {"nodes", nodes_json(start)},
               {"allocations", allocations_json(start)},
               {"spans", spans_json(start)},
               {"notices", notices_json(start)},
               {"clocks", clocks_json(start)},
               {"attributes", attributes_json(start)},
               {"missing", missing_json(start)},
               {"lanes", lanes_json(start)},
               {"series", series_json(start)},
               {"table", rows_json(start)}};
  json["texts"] = start.texts.all();
  return json;
}

/// [bit, word, meaning]
Json flags_json() {
  Json flags = Json::array();
  for (const auto& flag : flag_words()) flags.push_back({flag.bit, flag.word, flag.meaning});
  return flags;
}

/// Each start's share of what all of them may have, by its nodes.
PageLimits share(const PageLimits& limits, std::size_t nodes, std::size_t all_nodes) {
  PageLimits part = limits;
  for (auto limit :
       {&PageLimits::points, &PageLimits::bars, &PageLimits::runs, &PageLimits::rows}) {
    part.*limit = std::max<std::size_t>(16, limits.*limit * nodes / all_nodes);
  }
  return part;
}

/// JSON that can stand inside of a script element: nothing in it ends that, whatever it says.
std::string escape_html(const std::string& json) {
  std::string out;
  out.reserve(json.size() + json.size() / 16);
  for (const char c : json) {
    switch (c) {
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string data_within(const std::vector<Timeline>& starts, const PageLimits& limits) {
  std::size_t all_nodes = 0;
  for (const auto& timeline : starts) all_nodes += std::max<std::size_t>(1, timeline.nodes.size());
  Json data = {{"version", kPageVersion}, {"flags", flags_json()}, {"starts", Json::array()}};
  for (const auto& timeline : starts) {
    const auto nodes = std::max<std::size_t>(1, timeline.nodes.size());
    data["starts"].push_back(start_json(timeline, share(limits, nodes, all_nodes)));
  }
  // ASCII alone: U+2028 and the like become escapes too. Bytes that are no text become '?'.
  return escape_html(data.dump(-1, ' ', true, Json::error_handler_t::replace));
}

}  // namespace

std::string cut_text(const std::string& text, std::size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  std::size_t end = most_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

std::size_t Texts::index(const std::string& text) {
  const auto [at, fresh] = known_.try_emplace(text, texts_.size());
  if (fresh) texts_.push_back(cut_text(text, most_bytes_));
  return at->second;
}

PageStart::PageStart(const Timeline& whole, const PageLimits& most)
    : timeline(whole), limits(most), texts(most.text_bytes), nodes(node_names(whole)) {
  for (std::size_t i = 0; i < nodes.size(); ++i) node_index.emplace(nodes[i], i);
}

std::int64_t PageStart::us(std::int64_t time_ns) const {
  // Both are rounded in the same way, so that edges which were one stay one.
  return time_ns / 1000 - timeline.begin_ns / 1000;
}

std::string page_data(const std::vector<Timeline>& starts, const PageLimits& limits) {
  constexpr std::size_t kFewest = 64;
  PageLimits now = limits;
  std::string data = data_within(starts, now);
  while (data.size() > limits.bytes && now.points > kFewest) {
    const double part =
        std::min(0.5, 0.9 * static_cast<double>(limits.bytes) / static_cast<double>(data.size()));
    for (auto limit :
         {&PageLimits::points, &PageLimits::series_points, &PageLimits::bars, &PageLimits::runs,
          &PageLimits::rows, &PageLimits::texts, &PageLimits::text_bytes}) {
      const auto less = static_cast<std::size_t>(static_cast<double>(now.*limit) * part);
      now.*limit = std::max(kFewest, less);
    }
    data = data_within(starts, now);
  }
  return data;
}

}  // namespace sphase
