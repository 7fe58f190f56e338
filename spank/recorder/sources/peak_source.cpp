#include "spank/recorder/sources/peak_source.h"

#include <fcntl.h>

namespace sphase {
namespace {

std::string above(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

std::optional<PeakSource> PeakSource::open(const std::string& directory) {
  Fd peak(::open((directory + "/memory.peak").c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!peak) return std::nullopt;
  PeakSource source(std::move(peak));
  if (!source.set_anew()) return std::nullopt;
  return source;
}

/// Any text will do.
bool PeakSource::set_anew() const { return ::pwrite(peak_.get(), "0\n", 2, 0) == 2; }

std::optional<std::int64_t> PeakSource::take() {
  char buffer[64];
  const auto peak = parse_number(read_again(peak_, buffer));
  if (!peak || !set_anew()) return std::nullopt;
  return peak;
}

bool holds(const std::string& group, const std::string& path) {
  return path == group || is_below(path, group);
}

std::optional<std::string> group_of_tasks(const CgroupTree& tree, int pid, int outside_pid,
                                          int stepd_pid) {
  const auto own = tree.path(pid, "");
  if (!own || *own == "/") return std::nullopt;
  for (const std::string& group : {above(*own), *own}) {
    bool shared = group == "/";
    for (const int other : {outside_pid, stepd_pid}) {
      const auto path = tree.path(other, "");
      shared = shared || (path && holds(group, *path));
    }
    if (!shared) return group;
  }
  return std::nullopt;
}

}  // namespace sphase
