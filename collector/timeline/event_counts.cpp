#include "collector/timeline/event_counts.h"

#include <algorithm>

namespace sphase {
namespace {

std::optional<double> ratio(const EventCounts::Event* over, const EventCounts::Event* under) {
  if (over == nullptr || under == nullptr || over->parts != under->parts) return std::nullopt;
  if (under->count <= 0) return std::nullopt;
  return over->count / under->count;
}

bool took_turns(const Counted& counted) {
  return counted.time_enabled_ns && counted.time_running_ns &&
         *counted.time_running_ns < *counted.time_enabled_ns;
}

/// How often it happened, were it counted all the time. Source: perf_event_open(2), "time_enabled".
double scaled_up(const Counted& counted) {
  const auto value = static_cast<double>(*counted.value);
  if (!took_turns(counted) || *counted.time_running_ns <= 0) return value;
  return value * static_cast<double>(*counted.time_enabled_ns) /
         static_cast<double>(*counted.time_running_ns);
}

}  // namespace

EventCounts::Event& EventCounts::at(const std::string& name) {
  const auto place =
      std::lower_bound(events_.begin(), events_.end(), name,
                       [](const Event& e, const std::string& n) { return e.name < n; });
  if (place != events_.end() && place->name == name) return *place;
  return *events_.insert(place, Event{name, 0, 0, false});
}

void EventCounts::add_part(const std::vector<Counted>& counted) {
  ++parts_;
  for (const Counted& one : counted) {
    if (!one.value) continue;
    Event& event = at(one.event);
    event.count += scaled_up(one);
    event.scaled = event.scaled || took_turns(one);
    ++event.parts;
  }
}

void EventCounts::add(const EventCounts& more) {
  parts_ += more.parts_;
  for (const Event& other : more.events_) {
    Event& event = at(other.name);
    event.count += other.count;
    event.parts += other.parts;
    event.scaled = event.scaled || other.scaled;
  }
}

bool EventCounts::partial() const {
  return std::any_of(events_.begin(), events_.end(),
                     [this](const Event& event) { return event.parts < parts_; });
}

bool EventCounts::scaled() const {
  return std::any_of(events_.begin(), events_.end(),
                     [](const Event& event) { return event.scaled; });
}

const EventCounts::Event* EventCounts::find(std::string_view name) const {
  const auto found = std::find_if(events_.begin(), events_.end(),
                                  [&](const Event& event) { return event.name == name; });
  return found == events_.end() ? nullptr : &*found;
}

const EventCounts::Event* EventCounts::first_of(std::string_view name,
                                                std::string_view otherwise) const {
  const Event* const first = find(name);
  return first != nullptr ? first : find(otherwise);
}

std::optional<double> EventCounts::count(std::string_view name) const {
  const Event* const event = find(name);
  return event == nullptr ? std::nullopt : std::optional(event->count);
}

std::optional<double> EventCounts::instructions() const { return count("PAPI_TOT_INS"); }

std::optional<double> EventCounts::instructions_per_cycle() const {
  return ratio(find("PAPI_TOT_INS"), find("PAPI_TOT_CYC"));
}

std::optional<double> EventCounts::misses_per_kilo_instruction() const {
  const auto per_one = ratio(first_of("PAPI_L3_TCM", "perf::CACHE-MISSES"), find("PAPI_TOT_INS"));
  return per_one ? std::optional(*per_one * 1000) : std::nullopt;
}

std::optional<double> EventCounts::gflops(std::int64_t time_ns) const {
  const Event* const event = first_of("PAPI_FP_OPS", "PAPI_DP_OPS");
  if (event == nullptr || time_ns <= 0) return std::nullopt;
  return event->count / static_cast<double>(time_ns);
}

}  // namespace sphase
