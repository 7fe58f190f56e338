// Any bytes in the marker ring: the recorder's reader and its phases neither crash nor read
// outside. An entry point of libFuzzer (./dev fuzz ring).
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "common/vocabulary.h"
#include "spank/recorder/phases/phase_tracker.h"
#include "spank/recorder/phases/ring_reader.h"

namespace {

using namespace sphase;

constexpr std::uint32_t kCapacity = 8;
constexpr std::size_t kBytes = SPHASE_RING_HEADER_BYTES + kCapacity * SPHASE_RECORD_BYTES;

/// What a program of the step has mapped.
class Mapping {
 public:
  explicit Mapping(int memfd)
      : memory_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0)) {
    if (memory_ == MAP_FAILED) std::abort();
  }
  ~Mapping() { munmap(memory_, kBytes); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  /// Records come first in `data`, so that short inputs reach them; the header behind them.
  void write(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t kRecords = kBytes - SPHASE_RING_HEADER_BYTES;
    char* const bytes = static_cast<char*>(memory_);
    std::memcpy(bytes + SPHASE_RING_HEADER_BYTES, data, std::min(size, kRecords));
    if (size > kRecords) {
      std::memcpy(bytes, data + kRecords,
                  std::min<std::size_t>(size - kRecords, SPHASE_RING_HEADER_BYTES));
    }
  }

 private:
  void* memory_;
};

void handle(const sphase_record& record, std::int64_t now_ns, PhaseTracker& phases) {
  const RecordText text = record_text(record);
  if (text.name.size() > 3 * SPHASE_TEXT_BYTES || text.value.size() > 3 * SPHASE_TEXT_BYTES) {
    std::abort();
  }
  const bool shell = (record.flags & SPHASE_FLAG_SHELL) != 0;
  // As Session does: the task is that of the client, never one that the record names.
  const StreamId id =
      shell ? StreamId{true, 0, 0, 0} : StreamId{false, 0, record.client, record.tid};
  Edge edge;
  edge.time_ns = now_ns;
  edge.client = record.client;
  const int depth = record.depth == SPHASE_DEPTH_UNKNOWN ? -1 : record.depth;
  if (record.type == SPHASE_BEGIN) phases.begin(id, text.name, depth, record.value > 0, edge);
  if (record.type == SPHASE_END) phases.end(id, text.name, depth, record.value > 0, edge);
  if (record.type == SPHASE_VALUE) (void)phases.path_of(id);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto reader = RingReader::create(kCapacity);
  if (!reader) std::abort();
  Mapping mapping(reader->memfd());
  PhaseTracker phases([](std::string_view, const std::string&) {});
  std::int64_t now_ns = 1;
  for (int round = 0; round < 3; ++round) {
    mapping.write(data, size);
    for (std::uint32_t read = 0; read < 2 * kCapacity; ++read) {
      now_ns += RingReader::kTornNs / 2;
      if (const auto record = reader->next(now_ns)) handle(*record, now_ns, phases);
    }
    if (reader->waiting() > kCapacity) std::abort();
    (void)reader->dropped();
    reader->publish_tail();
  }
  phases.close_all([&](std::uint32_t) { return Edge{.time_ns = now_ns}; });
  for (const PhaseRow& row : phases.take_rows(now_ns, true)) {
    if (row.task != 0 || !row.end_ns || *row.end_ns < row.begin_ns) std::abort();
  }
  return 0;
}
