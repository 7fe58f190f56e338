#include "collector/ship/handshake.h"

#include <sys/random.h>

#include <algorithm>

namespace sphase {
namespace {

Result<Hello> hello_for(const Introduction& introduction, const std::string& nonce) {
  Hello hello{nonce, std::string(kNonceBytes, '\0'), introduction.node, introduction.file_id,
              introduction.wants_advice};
  if (::getrandom(hello.own_nonce.data(), kNonceBytes, 0) != ssize_t{kNonceBytes}) {
    return errno_error("no random bytes");
  }
  return hello;
}

/// That the welcome is of somebody who may be our collector.
Status check(const Introduction& introduction, const Hello& hello, const Welcome& welcome) {
  auto caller = read_credential(introduction.munge, welcome.credential);
  if (!caller) return Error{"the collector: " + caller.error()};
  const auto& uids = introduction.collector_uids;
  if (caller->payload == hello.own_nonce &&
      std::find(uids.begin(), uids.end(), caller->uid) != uids.end()) {
    return Done{};
  }
  return Error{introduction.host + " is not our collector: user " + std::to_string(caller->uid) +
               " runs it (TrustedUsers of sphase.conf)"};
}

}  // namespace

Result<Frame> expect(Peer& peer, FrameType type, std::int64_t limit_ms) {
  auto frame = peer.receive(limit_ms);
  if (!frame) return Error{frame.error()};
  if (!*frame) return Error{"the collector does not answer"};
  if ((*frame)->type == type) return std::move(**frame);
  if ((*frame)->type == FrameType::kRefused) {
    return Error{"the collector refuses: " + (*frame)->body.substr(0, 512)};
  }
  return Error{"the collector sent what nobody asked for"};
}

Result<Welcome> introduce(Peer& peer, const Introduction& introduction, std::int64_t limit_ms) {
  auto frame = expect(peer, FrameType::kChallenge, limit_ms);
  if (!frame) return Error{frame.error()};
  const auto challenge = parse_challenge(frame->body);
  if (!challenge) return Error{introduction.host + " is no collector of sphase"};
  if (challenge->version != kProtocolVersion) {
    return Error{"the collector speaks version " + std::to_string(challenge->version) +
                 " of the protocol, this program " + std::to_string(kProtocolVersion)};
  }
  auto hello = hello_for(introduction, challenge->nonce);
  if (!hello) return Error{hello.error()};
  auto credential = make_credential(introduction.munge, body_of(*hello));
  if (!credential) return Error{credential.error()};
  if (auto sent = peer.send(FrameType::kHello, *credential, limit_ms); !sent) {
    return Error{sent.error()};
  }
  frame = expect(peer, FrameType::kWelcome, limit_ms);
  if (!frame) return Error{frame.error()};
  auto welcome = parse_welcome(frame->body);
  if (!welcome) return Error{"the collector sent a welcome that cannot be read"};
  if (auto good = check(introduction, *hello, *welcome); !good) return Error{good.error()};
  return std::move(*welcome);
}

}  // namespace sphase
