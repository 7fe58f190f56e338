#include "collector/site.h"

#include <array>
#include <cstdio>
#include <cstdlib>

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

void tell(const std::string& sentence) {
  std::fputs(("sphase-collector: " + sentence + '\n').c_str(), stderr);
}

}  // namespace sphase
