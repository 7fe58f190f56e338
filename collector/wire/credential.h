// Who is at the other end: MUNGE credentials.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace sphase {

/// Where munged listens; "" is its usual place. `AuthInfo=socket=` of slurm.conf.
struct MungePlace {
  std::string socket;
};

struct Caller {
  std::uint32_t uid = 0;
  std::string payload;
};

/// A credential of the calling user around `payload`. It lives for a minute.
/// Cost: 1 to 2 ms, in which the thread waits for munged. Source: munge_encode(3).
Result<std::string> make_credential(const MungePlace& place, std::string_view payload);

/// Errors: one sentence, also for a credential that is too old, from the future, or that this host
/// has seen before: munged remembers each one for as long as it lives. Cost and source: as above,
/// munge_decode(3).
Result<Caller> read_credential(const MungePlace& place, const std::string& credential);

}  // namespace sphase
