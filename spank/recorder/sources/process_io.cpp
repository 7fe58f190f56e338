#include "spank/recorder/sources/process_io.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "spank/recorder/sources/sampler.h"

namespace sphase {
namespace {

void add(Io& sum, const Io& part) {
  sum.read_bytes += part.read_bytes;
  sum.write_bytes += part.write_bytes;
  sum.read_call_bytes += part.read_call_bytes;
  sum.write_call_bytes += part.write_call_bytes;
}

void subtract(Io& sum, const Io& part) {
  sum.read_bytes -= part.read_bytes;
  sum.write_bytes -= part.write_bytes;
  sum.read_call_bytes -= part.read_call_bytes;
  sum.write_call_bytes -= part.write_call_bytes;
}

void raise(Io& most, const Io& now) {
  most.read_bytes = std::max(most.read_bytes, now.read_bytes);
  most.write_bytes = std::max(most.write_bytes, now.write_bytes);
  most.read_call_bytes = std::max(most.read_call_bytes, now.read_call_bytes);
  most.write_call_bytes = std::max(most.write_call_bytes, now.write_call_bytes);
}

}  // namespace

std::optional<Io> parse_io(std::string_view text) {
  const auto rchar = number_after(text, "rchar");
  const auto wchar = number_after(text, "wchar");
  const auto read = number_after(text, "read_bytes");
  const auto write = number_after(text, "write_bytes");
  if (!rchar || !wchar || !read || !write) return std::nullopt;
  return Io{*read, *write, *rchar, *wchar};
}

ProcessIo::ProcessIo(std::string proc, int stepd_pid)
    : proc_(std::move(proc)), stepd_(open_read(proc_ + "/" + std::to_string(stepd_pid) + "/io")) {
  if (!stepd_) reason_ = std::string("/proc/PID/io: ") + std::strerror(errno);
  rebase();
}

void ProcessIo::rebase() {
  char buffer[512];
  if (const auto now = parse_io(read_again(stepd_, buffer))) base_ = *now;
}

std::optional<Io> ProcessIo::total(const std::vector<int>& pids) {
  char buffer[512];
  Io sum;
  bool any = false;
  if (const auto stepd = parse_io(read_again(stepd_, buffer))) {
    sum = *stepd;
    subtract(sum, base_);
    any = true;
  }
  std::erase_if(files_, [&](const auto& file) {
    return !std::binary_search(pids.begin(), pids.end(), file.first);
  });
  for (const int pid : pids) {
    auto file = files_.find(pid);
    if (file == files_.end()) {
      if (files_.size() >= kMaxProcesses) {
        reason_ = "only " + std::to_string(kMaxProcesses) + " processes at a time are read";
        continue;
      }
      file = files_.emplace(pid, open_read(proc_ + "/" + std::to_string(pid) + "/io")).first;
    }
    auto io = parse_io(read_again(file->second, buffer));
    if (!io) {  // ended; or its number is another process's by now
      file->second = open_read(proc_ + "/" + std::to_string(pid) + "/io");
      io = parse_io(read_again(file->second, buffer));
    }
    if (!io) continue;
    add(sum, *io);
    any = true;
  }
  if (!any && !any_) return std::nullopt;
  any_ = true;
  raise(most_, sum);
  return most_;
}

Tier ProcessIo::tier() const { return Tier{any_ || stepd_ ? "proc io" : "", reason_}; }

}  // namespace sphase
