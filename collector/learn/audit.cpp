#include "collector/learn/audit.h"

#include <algorithm>
#include <charconv>

namespace sphase {
namespace {

constexpr std::string_view kFirstWord = "sphase/1";
constexpr std::size_t kBytesMost = 4096, kWordMost = 32, kLeftMost = 16;
constexpr std::size_t kProfileMost = 143;                // ProfileKey of common/profile_key.h
constexpr std::int64_t kNumberMost = 1'000'000'000'000;  // more nodes, MiB or s than there are

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Takes what stands before the next separator off the front of `text`.
template <typename IsSeparator>
std::string_view take(std::string_view& text, IsSeparator is_separator) {
  const auto end = std::find_if(text.begin(), text.end(), is_separator);
  const auto size = static_cast<std::size_t>(end - text.begin());
  const std::string_view part = text.substr(0, size);
  text.remove_prefix(std::min(text.size(), size + 1));
  return part;
}

std::string_view take_until(std::string_view& text, char separator) {
  return take(text, [separator](char c) { return c == separator; });
}

Maybe number_of(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, value);
  if (failed != std::errc() || stop != end || value < 0 || value > kNumberMost) return std::nullopt;
  return value;
}

/// "user-set"; anything else is no word of ours.
std::string word_of(std::string_view text) {
  const bool ours = text.size() <= kWordMost && std::all_of(text.begin(), text.end(), [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
                    });
  return ours && text != "-" ? std::string(text) : "";
}

/// "1001/NAME" with a name that can be printed.
std::string profile_of(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos || slash + 1 == text.size()) return "";
  if (text.size() > kProfileMost || !number_of(text.substr(0, slash))) return "";
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && c != 0x7f;
  });
  return plain ? std::string(text) : "";
}

void set_memory(AuditSizes& sizes, std::string_view value) {
  constexpr std::string_view kPerCpu = "/cpu";
  sizes.memory_per_cpu = value.ends_with(kPerCpu);
  if (sizes.memory_per_cpu) value.remove_suffix(kPerCpu.size());
  sizes.memory_mib = number_of(value);
}

/// "nodes:4,memory:2000/cpu,cpus:-"
AuditSizes sizes_of(std::string_view list) {
  AuditSizes sizes;
  while (!list.empty()) {
    std::string_view value = take_until(list, ',');
    const std::string_view field = take_until(value, ':');
    if (field == "nodes") sizes.nodes = number_of(value);
    if (field == "tasks") sizes.tasks = number_of(value);
    if (field == "cpus") sizes.cpus = number_of(value);
    if (field == "memory") set_memory(sizes, value);
    if (field == "time") sizes.time_min = number_of(value);
  }
  return sizes;
}

std::vector<AuditLeft> left_of(std::string_view list) {
  std::vector<AuditLeft> left;
  while (!list.empty() && left.size() < kLeftMost) {
    std::string_view reason = take_until(list, ',');
    AuditLeft one;
    one.field = word_of(take_until(reason, ':'));
    one.reason = word_of(reason);
    if (!one.field.empty() && !one.reason.empty()) left.push_back(std::move(one));
  }
  return left;
}

void set_word(Audit& audit, std::string_view key, std::string_view value) {
  if (key == "profile") audit.profile = profile_of(value);
  if (key == "mode") audit.mode = word_of(value);
  if (key == "from") audit.from = word_of(value);
  if (key == "advice") audit.advice = word_of(value);
  if (key == "runs") audit.runs = number_of(value);
  if (key == "made") audit.made_s = number_of(value);
  if (key == "asked") audit.asked = sizes_of(value);
  if (key == "set") audit.set = sizes_of(value);
  if (key == "would") audit.would = sizes_of(value);
  if (key == "left") audit.left = left_of(value);
}

/// What follows the last word that is kFirstWord.
std::optional<std::string_view> find_line(std::string_view comment) {
  for (auto at = comment.rfind(kFirstWord); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : comment.rfind(kFirstWord, at - 1)) {
    const std::string_view rest = comment.substr(at + kFirstWord.size());
    const bool begins = at == 0 || is_blank(comment[at - 1]);
    if (begins && (rest.empty() || is_blank(rest.front()))) return rest.substr(0, kBytesMost);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Audit> parse_audit(std::string_view comment) {
  auto rest = find_line(comment);
  if (!rest) return std::nullopt;
  Audit audit;
  while (!rest->empty()) {
    std::string_view value = take(*rest, is_blank);
    const std::string_view key = take_until(value, '=');
    set_word(audit, key, value);
  }
  return audit;
}

}  // namespace sphase
