// advice.cdb: a constant database (tinycdb) from profile keys to packed advice. Never changed in
// place: a new table is written aside and renamed over the old one, so that a reader, also one
// inside slurmctld, sees all of the old one or all of the new one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/advice.h"
#include "common/result.h"

namespace sphase {

using AdviceEntry = std::pair<std::string, Advice>;  // profile key, advice

/// Seals every entry and puts them all at `path`, mode 0600, owned by the owner of its folder (let
/// that be SlurmUser, who has to read it) where we are root. Keys must differ. Cost: one write of
/// about 200 to 2500 bytes per entry and two fsync.
/// On an error the old table stays, and nothing is left beside it.
Status write_advice_table(const std::string& path, const std::vector<AdviceEntry>& entries);

/// Every entry that can be trusted, expired ones too; damaged ones are left out.
/// Errors: no such file, or it is no table.
Result<std::vector<AdviceEntry>> read_advice_table(const std::string& path);

/// nullopt: there is none for `key`, or it has expired. Errors: as above, or it is damaged.
Result<std::optional<Advice>> find_advice(const std::string& path, const std::string& key,
                                          std::int64_t now_s);

}  // namespace sphase
