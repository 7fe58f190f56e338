// Asks the collector, as the calling user.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/answer/answer.h"
#include "collector/wire/credential.h"

namespace sphase {

struct CollectorPlace {
  std::string host;
  std::uint16_t port = 6825;
  MungePlace munge;
  std::vector<std::uint32_t> uids;  // as whom a collector may run
};

/// Waits for at most a minute. Errors: one sentence.
Result<Reply> ask_collector(const CollectorPlace& place, const Question& question);

}  // namespace sphase
