#include "common/advice.h"

#include <cmath>
#include <cstring>

#include "common/profile_key.h"

namespace sphase {
namespace {

std::size_t size_of(const AdviceHeader& head) {
  return sizeof(AdviceHeader) + head.phases * sizeof(AdvicePhase);
}

std::uint64_t checksum(std::string_view key, const Advice& advice) {
  AdviceHeader head = advice.head;
  head.checksum = 0;
  std::uint64_t hash = fnv1a(key);
  hash = fnv1a({reinterpret_cast<const char*>(&head), sizeof(head)}, hash);
  return fnv1a({reinterpret_cast<const char*>(advice.phase), size_of(head) - sizeof(head)}, hash);
}

template <std::size_t size>
bool terminated(const char (&text)[size]) {
  return std::memchr(text, '\0', size) != nullptr;
}

bool sane(float value) { return std::isfinite(value) && value >= 0; }

bool sane(const Advice& advice) {
  const AdviceHeader& head = advice.head;
  if (!terminated(head.policy) || !terminated(head.partition)) return false;
  if (!sane(head.time_s) || !sane(head.time_low_s) || !sane(head.time_high_s)) return false;
  if (!sane(head.confidence)) return false;
  if (head.memory_bytes != 0 && head.memory_bytes < head.memory_peak_bytes) return false;
  for (std::size_t i = 0; i < head.phases; ++i) {
    const AdvicePhase& phase = advice.phase[i];
    if (!terminated(phase.path) || !sane(phase.cpus_busy)) return false;
    if (!sane(phase.time_s) || !sane(phase.time_low_s) || !sane(phase.time_high_s)) return false;
  }
  return true;
}

}  // namespace

const char* word_of(AdviceState state) {
  switch (state) {
    case AdviceState::kFound:
      return "found";
    case AdviceState::kMissing:
      return "none";
    case AdviceState::kDamaged:
      return "damaged";
    case AdviceState::kOtherVersion:
      return "other-version";
    case AdviceState::kExpired:
      break;
  }
  return "expired";
}

std::size_t seal_advice(std::string_view key, Advice& advice) {
  advice.head.magic = kAdviceMagic;
  advice.head.version = kAdviceVersion;
  if (advice.head.phases > kAdvicePhasesMost) advice.head.phases = kAdvicePhasesMost;
  advice.head.checksum = checksum(key, advice);
  return size_of(advice.head);
}

AdviceState read_advice(std::string_view key, std::string_view bytes, std::int64_t now_s,
                        Advice& out) {
  std::memset(&out, 0, sizeof(out));
  if (bytes.size() < sizeof(AdviceHeader)) return AdviceState::kDamaged;
  std::memcpy(&out.head, bytes.data(), sizeof(AdviceHeader));
  if (out.head.magic != kAdviceMagic) return AdviceState::kDamaged;
  if (out.head.version != kAdviceVersion) return AdviceState::kOtherVersion;
  if (out.head.phases > kAdvicePhasesMost || bytes.size() != size_of(out.head)) {
    return AdviceState::kDamaged;
  }
  std::memcpy(out.phase, bytes.data() + sizeof(AdviceHeader), bytes.size() - sizeof(AdviceHeader));
  if (checksum(key, out) != out.head.checksum || !sane(out)) return AdviceState::kDamaged;
  return out.head.expires_s < now_s ? AdviceState::kExpired : AdviceState::kFound;
}

}  // namespace sphase
