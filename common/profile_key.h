// Under which key runs of "the same job" are learned. One implementation for slurmctld
// (job_submit), the collector and the command: libc only, no allocation, cost bounded whatever a
// user submits (64 KiB of script are looked at: about 60 us; an ordinary script takes 2 us).
//
// The key is "UID/NAME" for --phase-telemetry=profile=NAME, else "UID/~HASH": FNV-1a, 64 bit
// (Fowler, Noll, Vo), of the normalised job name and script. The user is part of every key, so that
// nobody's runs can change what another user's jobs ask for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sphase {

inline constexpr std::size_t kScriptBytesHashed = 64 << 10;

/// A profile key as text; never longer than 10 + 1 + 127 bytes.
struct ProfileKey {
  char text[144] = {};
  std::size_t size = 0;

  std::string_view view() const { return {text, size}; }
};

/// `script` may be empty (srun, salloc). `profile` is the user's name for it, "" = none.
///
/// Normalised script: without comment lines (and so without #SBATCH and the shebang) and empty
/// lines, runs of blanks as one, ends trimmed. Another --mem in the script is the same job.
/// Normalised job name: each run of digits counts as '#', since names are often numbered.
ProfileKey profile_key(std::uint32_t uid, std::string_view profile, std::string_view job_name,
                       std::string_view script);

/// The hash in the key of a job without a name of its own.
std::uint64_t script_hash(std::string_view job_name, std::string_view script);

/// FNV-1a of `bytes`, continuing from `hash`.
std::uint64_t fnv1a(std::string_view bytes, std::uint64_t hash = 0xcbf29ce484222325U);

}  // namespace sphase
