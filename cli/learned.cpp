#include "cli/learned.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "collector/cluster_db.h"
#include "collector/report/format.h"

namespace sphase {
namespace {

constexpr std::size_t kListed = 8;

bool is_key(const std::string& text) {
  const auto slash = text.find('/');
  return slash != std::string::npos && slash > 0 && text.find_first_not_of("0123456789") == slash &&
         slash + 1 < text.size();
}

std::string joined(const std::vector<std::string>& keys) {
  std::string text;
  for (std::size_t i = 0; i < keys.size() && i < kListed; ++i) {
    text += (i > 0 ? ", " : "") + keys[i];
  }
  if (keys.size() > kListed) text += fmt::format(" and {} more", keys.size() - kListed);
  return text;
}

template <typename Fits>
std::vector<std::string> keys_that(const std::vector<ProfileLine>& known, Fits fits) {
  std::vector<std::string> keys;
  for (const auto& line : known) {
    if (fits(line.profile)) keys.push_back(line.profile);
  }
  return keys;
}

}  // namespace

Result<SiteConfig> load_site_config() {
  char path[512], why[512] = "";
  site_config_path(path, sizeof(path));
  SiteConfig config;
  int code = 0;
  if (read_site_config(path, config, why, sizeof(why), code)) return config;
  if (code == ENOENT) return SiteConfig();
  return Error{why};
}

std::string cluster_path(const std::string& given, const SiteConfig& config) {
  if (!given.empty()) return given;
  const char* own = std::getenv("SPHASE_DB");
  return own != nullptr && *own != '\0' ? default_cluster_path() : config.cluster_db;
}

Result<std::string> choose_profile(const std::vector<ProfileLine>& known, const std::string& text,
                                   uid_t uid) {
  std::string wanted = text;
  if (wanted.ends_with("…")) wanted.resize(wanted.size() - std::string("…").size());
  const std::string own = std::to_string(uid) + "/" + wanted;
  for (const auto& key : {wanted, own}) {
    if (!keys_that(known, [&](const std::string& k) { return k == key; }).empty()) return key;
  }
  const std::string key = is_key(wanted) ? wanted : own;
  if (key[key.find('/') + 1] == '~') {
    const auto found = keys_that(known, [&](const std::string& k) { return k.starts_with(key); });
    if (found.size() == 1) return found.front();
    if (!found.empty()) return Error{text + " may be each of " + joined(found)};
  }
  const auto others =
      keys_that(known, [&](const std::string& k) { return k.ends_with("/" + wanted); });
  if (!others.empty()) {
    return Error{"you have no profile " + text + "; others have " + joined(others)};
  }
  return Error{"no profile " + text + " is known: `sphase profile list` shows those that are"};
}

Result<Learned> load_learned(Database& db, const std::string& profile, const SiteConfig& config,
                             std::int64_t now_s) {
  auto runs = load_observed(db, profile);
  if (!runs) return Error{runs.error()};
  if (runs->empty()) return Error{"nothing is known of profile " + profile};
  const ObservedJob& last = runs->back();
  auto limits = load_partition_limits(db, last.cluster, last.partition);
  if (!limits) return Error{limits.error()};
  Learned learned;
  learned.profile = profile;
  learned.advice = advise(*runs, config, *limits);
  learned.packed = pack(learned.advice, *runs, config, now_s);
  learned.runs = std::move(*runs);
  return learned;
}

int fail_with(const std::string& why, int code) {
  std::fputs(("sphase: " + clean(why) + '\n').c_str(), stderr);
  return code;
}

int print_out(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  return written && std::fflush(stdout) == 0 ? 0 : fail_with("cannot write to stdout", 1);
}

}  // namespace sphase
