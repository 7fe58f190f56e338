#include "collector/ship/asker.h"

#include "collector/ship/handshake.h"

namespace sphase {
namespace {

constexpr std::int64_t kConnectMs = 5'000, kAnswerMs = 60'000;

}  // namespace

Result<Reply> ask_collector(const CollectorPlace& place, const Question& question) {
  Peer peer([] { return false; });
  if (auto done = peer.connect(place.host, place.port, kConnectMs); !done) {
    return Error{done.error()};
  }
  const Introduction introduction{place.host, place.munge, place.uids, "", "", false};
  if (auto welcome = introduce(peer, introduction, kAnswerMs); !welcome) {
    return Error{welcome.error()};
  }
  if (auto sent = peer.send(FrameType::kQuestion, text_of(question), kAnswerMs); !sent) {
    return Error{sent.error()};
  }
  auto frame = expect(peer, FrameType::kAnswer, kAnswerMs);
  if (!frame) return Error{frame.error()};
  if (frame->body.empty()) return Error{"the collector's answer is empty"};
  return Reply{static_cast<unsigned char>(frame->body.front()), frame->body.substr(1)};
}

}  // namespace sphase
