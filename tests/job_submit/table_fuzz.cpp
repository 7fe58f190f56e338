// Any bytes as an advice table: no crash, and no answer but the right one. An entry point of
// libFuzzer (./dev fuzz table), and of table_fuzz_test.cpp.
#include "tests/job_submit/table_fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "job_submit/lookup.h"

namespace {

/// A file in memory that the plugin can open by a path.
class MemoryFile {
 public:
  MemoryFile() : file_(memfd_create("table", MFD_CLOEXEC)) {
    std::snprintf(path_, sizeof(path_), "/proc/self/fd/%d", file_);
  }
  void set(const std::uint8_t* data, std::size_t size) const {
    if (ftruncate(file_, 0) != 0 || pwrite(file_, data, size, 0) != static_cast<ssize_t>(size)) {
      std::abort();
    }
  }
  const char* path() const { return path_; }

 private:
  int file_;
  char path_[32];
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const MemoryFile file;
  file.set(data, size);
  for (int i = 0; i < sphase::testing::kFuzzProfiles; ++i) {
    sphase::Advice advice;
    int failed = 0;
    const auto state =
        sphase::look_up(file.path(), sphase::testing::fuzz_key(i), 1000, advice, failed);
    const bool right = advice.head.nodes == sphase::testing::fuzz_nodes(i);
    if (state == sphase::AdviceState::kFound && !right) std::abort();  // another profile's
    if (state == sphase::AdviceState::kMissing && advice.head.nodes != 0) std::abort();
  }
  return 0;
}
