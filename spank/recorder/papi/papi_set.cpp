#include "spank/recorder/papi/papi_set.h"

#include <algorithm>
#include <utility>

#include "spank/recorder/papi/papi_probe.h"

namespace sphase {

int PapiSet::open(const Request& request) {
  close();
  first_file_ = api_.next_file();
  const int code = build(request);
  if (code != kPapiOk) close();
  return code;
}

/// Events come last: they are opened as they are added, and only then on the right task.
int PapiSet::build(const Request& request) {
  int code = api_.create(&set_);
  if (code != kPapiOk) return code;
  created_ = true;
  code = api_.assign(set_, request.component);
  if (code == kPapiOk && request.multiplexed) code = api_.multiplex(set_);
  if (code == kPapiOk) code = api_.inherit(set_);
  if (code == kPapiOk) code = api_.attach(set_, request.pid);
  for (std::size_t i = 0; code == kPapiOk && i < request.events.size(); ++i) {
    code = api_.add(set_, request.events[i]);
  }
  if (code == kPapiOk) code = api_.start(set_);
  started_ = code == kPapiOk;
  return code;
}

void PapiSet::close() {
  long long counts[kMostEvents] = {};
  if (started_) (void)api_.stop(set_, counts);  // a task that is gone may refuse; freed anyway
  if (created_) (void)api_.destroy(set_);
  started_ = created_ = false;
  files_.clear();
}

void PapiSet::find_files(std::size_t most, const std::set<int>& others) {
  constexpr int kSpan = 64;  // 8 events, and what other threads open meanwhile
  std::vector<std::pair<std::uint64_t, int>> found;
  for (int fd = first_file_, left = kSpan; left > 0 && found.size() < most; ++fd) {
    if (others.contains(fd)) continue;
    --left;
    if (const std::uint64_t id = api_.perf_id(fd)) found.emplace_back(id, fd);
  }
  std::sort(found.begin(), found.end());  // ids grow, descriptors come in any order
  files_.clear();
  for (const auto& [id, fd] : found) files_.push_back(fd);
}

std::optional<PapiSet::Raw> PapiSet::read_file(std::size_t index, bool multiplexed) const {
  std::uint64_t words[3] = {};
  const std::size_t wanted = (multiplexed ? 3 : 1) * sizeof(words[0]);
  const ssize_t got = api_.read_file(files_[index], words, sizeof(words));
  if (got != static_cast<ssize_t>(wanted)) return std::nullopt;
  return Raw{words[0], words[1], words[2]};
}

}  // namespace sphase
