// The site's configuration as the commands of sphase-collector use it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/site_config.h"

namespace sphase {

struct Site {
  SiteConfig config;
  std::string path;  // of sphase.conf, whether or not there is one
};

/// Reads sphase.conf at `given`, or where `given` is empty at its usual place, and there its
/// absence means the defaults. Errors: one line, what is wrong and what would be right.
Result<Site> load_site(const std::string& given);

/// The database that is meant: `given`, else $SPHASE_DB, else ClusterDatabase of sphase.conf.
std::string chosen_db(const std::string& given, const SiteConfig& config);

/// User ids of TrustedUsers. A name that this host does not know is left out where another one is
/// known. Errors: none of them is.
Result<std::vector<std::uint32_t>> trusted_uids(const SiteConfig& config);

/// One line to stderr.
void tell(const std::string& sentence);

}  // namespace sphase
