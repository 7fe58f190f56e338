// One read of the advice table.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/advice.h"

namespace sphase {

/// Looks `key` up in the table at `path`. `errno_out` != 0: the table could not be read.
///
/// The table is opened, read (tinycdb's cdb_seek: six or seven short reads, all from the page
/// cache) and closed again for every lookup: about 8 us. It is not mapped, and no descriptor is
/// kept: a table that somebody cuts in place would kill a process that has it mapped (SIGBUS), and
/// this process is slurmctld. It also makes replacing the table free of state, and threads free of
/// each other.
AdviceState look_up(const char* path, std::string_view key, std::int64_t now_s, Advice& out,
                    int& errno_out);

}  // namespace sphase
