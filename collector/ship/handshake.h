// The first frames of a connection: who we are, and that the other end is a collector of ours.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/ship/peer.h"
#include "collector/wire/credential.h"
#include "collector/wire/message.h"

namespace sphase {

struct Introduction {
  std::string host;  // for sentences
  MungePlace munge;
  std::vector<std::uint32_t> collector_uids;  // as whom a collector may run
  std::string node, file_id;                  // "" both: a user who asks
  bool wants_advice = false;
};

/// The next frame, which must be of that type. Errors: one sentence; what the collector says where
/// it refuses.
Result<Frame> expect(Peer& peer, FrameType type, std::int64_t limit_ms);

/// On a peer that has just connected.
Result<Welcome> introduce(Peer& peer, const Introduction& introduction, std::int64_t limit_ms);

}  // namespace sphase
