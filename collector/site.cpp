#include "collector/site.h"

#include <pwd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace sphase {

Result<Site> load_site(const std::string& given) {
  Site site;
  site.path = given;
  if (given.empty()) {
    std::array<char, 4096> usual{};
    site_config_path(usual.data(), usual.size());
    site.path = usual.data();
  }
  std::array<char, 512> why{};
  int code = 0;
  if (read_site_config(site.path.c_str(), site.config, why.data(), why.size(), code)) return site;
  if (code == ENOENT && given.empty()) {
    site.config = SiteConfig();
    return site;
  }
  const std::string sentence = why.data();
  return Error{sentence.find(site.path) == std::string::npos ? site.path + ": " + sentence
                                                             : sentence};
}

std::string chosen_db(const std::string& given, const SiteConfig& config) {
  if (!given.empty()) return given;
  const char* named = std::getenv("SPHASE_DB");
  return named != nullptr && *named != '\0' ? named : config.cluster_db;
}

Result<std::vector<std::uint32_t>> trusted_uids(const SiteConfig& config) {
  std::vector<std::uint32_t> uids;
  std::istringstream names(config.trusted_users);
  for (std::string name; std::getline(names, name, ',');) {
    char* end = nullptr;
    const unsigned long number = std::strtoul(name.c_str(), &end, 10);
    if (!name.empty() && *end == '\0' && number < UINT32_MAX) {
      uids.push_back(static_cast<std::uint32_t>(number));
    } else if (const passwd* entry = ::getpwnam(name.c_str())) {
      uids.push_back(entry->pw_uid);
    }
  }
  if (uids.empty()) {
    return Error{std::string("TrustedUsers=") + config.trusted_users + ": there are no such users"};
  }
  return uids;
}

void tell(const std::string& sentence) {
  std::fputs(("sphase-collector: " + sentence + '\n').c_str(), stderr);
}

}  // namespace sphase
