// The probe's result in run_dir: lines "word=value", the last one a checksum of those before.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "common/profile_key.h"
#include "spank/recorder/file.h"
#include "spank/recorder/papi/papi_probe.h"

namespace sphase {
namespace {

constexpr std::size_t kMostBytes = 8192;

std::string checksum_line(std::string_view text) {
  return "sum=" + std::to_string(fnv1a(text)) + "\n";
}

std::string first_line(const char* path) {
  const std::string text = read_file(path).value_or("");
  return text.substr(0, text.find('\n'));
}

/// What is another file once PAPI is installed anew.
std::string identity_of(const std::string& library) {
  struct stat found {};
  if (stat(library.c_str(), &found) != 0) return "none";
  return std::to_string(found.st_dev) + ":" + std::to_string(found.st_ino) + ":" +
         std::to_string(found.st_size) + ":" + std::to_string(found.st_mtim.tv_sec) + "." +
         std::to_string(found.st_mtim.tv_nsec);
}

/// The library comes first: kept_none() looks for it there.
std::string key_of(const std::string& library, std::string_view asked) {
  return library + " " + identity_of(library) + " " +
         first_line("/proc/sys/kernel/random/boot_id") + " " +
         first_line("/proc/sys/kernel/perf_event_paranoid") + " " + std::string(asked);
}

/// Users choose the events: they must not fill the folder.
std::string path_of(const std::string& run_dir, std::string_view asked) {
  constexpr std::uint64_t kFiles = 16;
  return run_dir + "/papi-" + std::to_string(fnv1a(asked) % kFiles) + ".probe";
}

/// nullopt: not there, not ours, or somebody else could have written it.
std::optional<std::string> read_own_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat found {};
  if (!fd || fstat(fd.get(), &found) != 0) return std::nullopt;
  if (!S_ISREG(found.st_mode) || found.st_uid != geteuid()) return std::nullopt;
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0) return std::nullopt;
  char buffer[kMostBytes];
  const std::string_view text = read_again(fd, buffer);
  if (text.empty() || text.size() == kMostBytes) return std::nullopt;
  return std::string(text);
}

/// Written aside and renamed: a reader sees all of it or none. If it fails, the next one asks anew.
void write_own_file(const std::string& path, const std::string& text) {
  const std::string aside = path + "." + std::to_string(getpid());
  ::unlink(aside.c_str());  // left by an earlier process of our pid
  const Fd fd(::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return;
  const bool whole =
      ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!whole || ::rename(aside.c_str(), path.c_str()) != 0) ::unlink(aside.c_str());
}

/// Takes the value of "word=…" off the front.
std::optional<std::string> take(std::string_view& text, std::string_view word) {
  const std::size_t end = text.find('\n');
  const std::size_t head = word.size() + 1;
  if (end == std::string_view::npos || end < head) return std::nullopt;
  if (text.substr(0, word.size()) != word || text[word.size()] != '=') return std::nullopt;
  std::string value(text.substr(head, end - head));
  text.remove_prefix(end + 1);
  return value;
}

bool is_consistent(const PapiPlan& plan) {
  const std::string& source = plan.tier.source;
  if (source == "none") return plan.events.empty() && plan.descriptors == 0;
  return (source == "papi-hw" || source == "papi-sw") && !plan.events.empty() &&
         plan.events.size() <= kMostEvents && plan.descriptors >= 0 && plan.descriptors <= 256;
}

}  // namespace

std::string kept_plan(const PapiPlan& plan, const std::string& key) {
  std::string text = "key=" + key + "\nsource=" + plan.tier.source +
                     "\nreason=" + plan.tier.reason +
                     "\nmultiplexed=" + std::to_string(plan.multiplexed ? 1 : 0) +
                     "\ndescriptors=" + std::to_string(plan.descriptors) + "\n";
  for (const std::string& event : plan.events) text += "event=" + event + "\n";
  return text + checksum_line(text);
}

std::optional<PapiPlan> parse_kept_plan(std::string_view text, const std::string& key) {
  const std::size_t sum_at = text.rfind("sum=");
  if (sum_at == std::string_view::npos) return std::nullopt;
  if (text.substr(sum_at) != checksum_line(text.substr(0, sum_at))) return std::nullopt;
  text = text.substr(0, sum_at);
  PapiPlan plan;
  if (take(text, "key") != key) return std::nullopt;
  const auto source = take(text, "source");
  const auto reason = take(text, "reason");
  const auto multiplexed = take(text, "multiplexed");
  const auto descriptors = parse_number(take(text, "descriptors").value_or(""));
  if (!source || !reason || !multiplexed || !descriptors) return std::nullopt;
  plan.tier = {*source, *reason};
  plan.multiplexed = *multiplexed == "1";
  plan.descriptors = static_cast<int>(*descriptors);
  while (const auto event = take(text, "event")) plan.events.push_back(*event);
  if (!text.empty() || !is_consistent(plan)) return std::nullopt;
  return plan;
}

std::optional<PapiPlan> kept_none(std::string_view asked, const std::string& run_dir) {
  const auto text = read_own_file(path_of(run_dir, asked));
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  const std::string key = take(rest, "key").value_or("");
  const std::string library = key.substr(0, key.find(' '));
  auto plan = parse_kept_plan(*text, key_of(library, asked));
  if (!plan || !plan->events.empty()) return std::nullopt;
  return plan;
}

PapiPlan probe_papi_once(const PapiApi& api, std::string_view asked, const std::string& run_dir) {
  const std::string key = key_of(api.library, asked);
  const std::string path = path_of(run_dir, asked);
  if (const auto text = read_own_file(path)) {
    if (auto plan = parse_kept_plan(*text, key)) return *plan;
  }
  PapiPlan plan = probe_papi(api, asked);
  write_own_file(path, kept_plan(plan, key));
  return plan;
}

}  // namespace sphase
