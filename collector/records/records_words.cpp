#include "collector/records/records_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

namespace sphase {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::uint64_t kMemPerCpu = 0x8000000000000000;     // MEM_PER_CPU of slurm.h
constexpr std::uint64_t kMemoryNotSet = 0x7ffffffffffffff0;  // NO_VAL64 and its like, without it

// NO_VAL64 and its like, for what nobody measured (energy without a plugin).
constexpr std::size_t kNotKnownDigits = 19;

// Ids that every slurmdbd gives these resources: enum tres_types of slurmdb.h, from 1.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kTres = {
    {{"1", "cpu"}, {"2", "mem"}, {"3", "energy"}, {"4", "node"}, {"5", "billing"}}};

std::string_view word_of(std::string_view id) {
  for (const auto& [number, word] : kTres) {
    if (number == id) return word;
  }
  return id;
}

/// Bytes of "2000M", "4G", "300" (MiB); nullopt for anything else.
Maybe bytes_of(std::string_view text) {
  double value = 0;
  const auto [stop, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc()) return std::nullopt;
  const std::string_view unit(stop, static_cast<std::size_t>(text.data() + text.size() - stop));
  constexpr std::string_view kUnits = "KMGTP";
  double factor = kMiB;
  if (!unit.empty()) {
    const auto at = kUnits.find(unit.front());
    if (at == std::string_view::npos) return std::nullopt;
    factor = 1024;
    for (std::size_t i = 0; i < at; ++i) factor *= 1024;
  }
  return static_cast<std::int64_t>(value * factor);
}

template <typename Each>
void for_each_tres(const std::string& tres, Each each) {
  std::istringstream items(tres);
  for (std::string item; std::getline(items, item, ',');) {
    const auto equals = item.find('=');
    if (equals == std::string::npos) continue;
    each(word_of(std::string_view(item).substr(0, equals)), item.substr(equals + 1));
  }
}

}  // namespace

std::string tres_in_words(const std::string& tres) {
  std::string words;
  for_each_tres(tres, [&](std::string_view name, std::string count) {
    const bool plain = count.find_first_not_of("0123456789") == std::string::npos;
    if (plain && count.size() >= kNotKnownDigits) return;
    if (name == "mem" && plain) count += 'M';
    words += fmt::format("{}{}={}", words.empty() ? "" : ",", name, count);
  });
  return words;
}

Maybe tres_count(const std::string& tres, const std::string& name) {
  Maybe found;
  for_each_tres(tres, [&](std::string_view word, const std::string& count) {
    if (word != name) return;
    std::int64_t value = 0;
    if (name == "mem") {
      found = bytes_of(count);
    } else if (std::from_chars(count.data(), count.data() + count.size(), value).ec ==
               std::errc()) {
      found = value;
    }
  });
  return found;
}

std::uint64_t node_memory_mib(std::uint64_t memory_mib, std::uint64_t cpus, std::uint64_t most) {
  const std::uint64_t amount = most & ~kMemPerCpu;
  if (amount == 0 || amount >= kMemoryNotSet) return memory_mib;
  // No node has so much that the product of two plausible numbers is too large for 64 bits.
  const std::uint64_t cap = most & kMemPerCpu ? amount * cpus : amount;
  return std::min(memory_mib, cap);
}

MaybeText requested_memory(std::uint64_t megabytes) {
  const std::uint64_t amount = megabytes & ~kMemPerCpu;
  // Slurm's NO_VAL64 family, and 0 for "all of the node's".
  if (amount == 0 || amount >= kMemoryNotSet) return std::nullopt;
  return fmt::format("{}M per {}", amount, megabytes & kMemPerCpu ? "CPU" : "node");
}

std::vector<std::pair<std::string, std::int64_t>> parse_node_memory(const std::string& text) {
  std::vector<std::pair<std::string, std::int64_t>> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string nodes, word;
    while (words >> word) {
      if (word.starts_with("Nodes=")) nodes = word.substr(6);
      if (!word.starts_with("Mem=") || nodes.empty()) continue;
      const auto memory = bytes_of(std::string_view(word).substr(4));
      if (memory && *memory > 0) found.emplace_back(nodes, *memory);
    }
  }
  return found;
}

MaybeText parse_reason(const std::string& text) {
  constexpr std::string_view kBefore = " Reason=", kAfter = " Dependency=";
  const auto at = text.find(kBefore);
  if (at == std::string::npos) return std::nullopt;
  const auto from = at + kBefore.size();
  const auto to = text.find(kAfter, from);
  if (to == std::string::npos || to == from) return std::nullopt;
  return text.substr(from, to - from);
}

std::string state_word(std::uint32_t state) {
  // enum job_states and the flags of slurm.h; the flags that end an interval come first.
  constexpr std::array<std::string_view, 12> kStates = {
      "PENDING", "RUNNING",   "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED",
      "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE",  "OUT_OF_MEMORY"};
  constexpr std::uint32_t kRequeue = 1u << 10, kResizing = 1u << 13;
  if (state & kResizing) return "RESIZING";
  if (state & kRequeue) return "REQUEUED";
  const std::uint32_t base = state & 0xff;
  return base < kStates.size() ? std::string(kStates.at(base)) : fmt::format("STATE_{}", base);
}

bool is_over(const MaybeText& state) {
  return state && *state != "PENDING" && *state != "RUNNING" && *state != "SUSPENDED";
}

Maybe expanded_job(std::string_view dependency) {
  constexpr std::string_view kWord = "expand:";
  const auto at = dependency.find(kWord);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = dependency.substr(at + kWord.size());
  std::int64_t job = 0;
  const auto [stop, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), job);
  return failed == std::errc() && job > 0 ? Maybe(job) : std::nullopt;
}

Maybe expanded_by_command(std::string_view command) {
  // Words of the user's own program may follow; none of them comes before the options.
  for (const std::string_view option : {" --dependency=", " --dependency ", " -d ", " -d"}) {
    const auto at = command.find(option);
    if (at == std::string_view::npos) continue;
    const std::string_view value = command.substr(at + option.size());
    return expanded_job(value.substr(0, value.find(' ')));
  }
  return std::nullopt;
}

}  // namespace sphase
