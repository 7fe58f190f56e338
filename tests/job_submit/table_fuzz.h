// The profiles of the table that fuzzing begins with: each advises a number of nodes of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sphase::testing {

inline constexpr int kFuzzProfiles = 6;
inline std::string fuzz_key(int i) { return "1001/profile" + std::to_string(i); }
inline std::uint32_t fuzz_nodes(int i) { return 100U + static_cast<std::uint32_t>(i); }

}  // namespace sphase::testing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
