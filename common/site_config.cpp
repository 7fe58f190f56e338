#include "common/site_config.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/site_text.h"

namespace sphase {
namespace {

struct Word {
  ResizeMode mode;
  const char* word;
};
constexpr Word kModes[] = {{ResizeMode::kOff, "off"},
                           {ResizeMode::kObserve, "observe"},
                           {ResizeMode::kAdvise, "advise"},
                           {ResizeMode::kApply, "apply"}};

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

template <std::size_t size>
bool copy(std::string_view text, char (&out)[size]) {
  if (text.empty() || text.size() >= size) return false;
  std::memcpy(out, text.data(), text.size());
  out[text.size()] = '\0';
  return true;
}

bool parse_number(std::string_view text, std::uint64_t least, std::uint64_t most,
                  std::uint64_t& out) {
  if (text.empty() || text.size() > 15) return false;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  out = value;
  return value >= least && value <= most;
}

template <typename Number>
bool number(std::string_view text, std::uint64_t least, std::uint64_t most, Number& out) {
  std::uint64_t value = 0;
  if (!parse_number(text, least, most, value)) return false;
  out = static_cast<Number>(value);
  return true;
}

/// Slurm's notation: a number is MiB; suffixes K, M, G, T.
bool parse_mib(std::string_view text, std::uint64_t& out) {
  constexpr std::uint64_t kMost = 1ULL << 40;
  if (text.empty()) return false;
  const char unit = text.back();
  const bool bare = unit >= '0' && unit <= '9';
  if (!bare) text.remove_suffix(1);
  std::uint64_t value = 0;
  if (!parse_number(text, 0, 1ULL << 40, value)) return false;
  switch (bare ? 'm' : unit | 0x20) {
    case 'k':
      value = (value + 1023) / 1024;
      break;
    case 'm':
      break;
    case 'g':
      value <<= 10;
      break;
    case 't':
      if (value > kMost >> 20) return false;
      value <<= 20;
      break;
    default:
      return false;
  }
  out = value;
  return value <= kMost;
}

bool parse_opt_in(std::string_view text, std::uint8_t& out) {
  out = 0;
  if (equal(text, "none")) return true;
  while (!text.empty()) {
    std::size_t size = 0;
    while (size < text.size() && text[size] != ',') ++size;
    const std::string_view word(text.data(), size);
    text.remove_prefix(size < text.size() ? size + 1 : size);
    if (equal(word, "nodes")) {
      out |= kOptNodes;
    } else if (equal(word, "cpus")) {
      out |= kOptCpus;
    } else if (equal(word, "memory")) {
      out |= kOptMemory;
    } else if (equal(word, "time")) {
      out |= kOptTime;
    } else {
      return false;
    }
  }
  return out != 0;
}

/// What came of one `Key=Value`.
enum class Outcome { kDone, kUnknownKey, kBadValue };

struct Key {
  const char* name;
  const char* right;  // what a right value looks like
};

struct Pair {
  std::string_view key, value;
};

constexpr Key kLimitKeys[] = {
    {"ResizeMode", "off, observe, advise or apply"},
    {"OptIn", "none, or some of nodes,cpus,memory,time"},
    {"MinNodes", "a number from 1"},
    {"MaxNodes", "a number, 0 = no limit"},
    {"MinMemory", "MiB per node, or with a suffix K, M, G, T"},
    {"MaxMemory", "MiB per node, or with a suffix K, M, G, T; 0 = no limit"},
    {"MinTime", "minutes"},
    {"MaxTime", "minutes, 0 = no limit"},
};

/// Index in kLimitKeys is the bit in SubmitRule::given.
Outcome set_limit(const Pair& pair, SubmitLimits& limits, std::uint16_t& given,
                  const char*& right) {
  for (std::size_t i = 0; i < sizeof(kLimitKeys) / sizeof(kLimitKeys[0]); ++i) {
    if (!equal(pair.key, kLimitKeys[i].name)) continue;
    right = kLimitKeys[i].right;
    given = static_cast<std::uint16_t>(given | (1U << i));
    bool good = false;
    switch (1U << i) {
      case SubmitRule::kMode:
        good = parse_mode(pair.value, limits.mode);
        break;
      case SubmitRule::kOptIn:
        good = parse_opt_in(pair.value, limits.opt_in);
        break;
      case SubmitRule::kMinNodes:
        good = number(pair.value, 1, 1'000'000, limits.min_nodes);
        break;
      case SubmitRule::kMaxNodes:
        good = number(pair.value, 0, 1'000'000, limits.max_nodes);
        break;
      case SubmitRule::kMinMemory:
        good = parse_mib(pair.value, limits.min_memory_mib);
        break;
      case SubmitRule::kMaxMemory:
        good = parse_mib(pair.value, limits.max_memory_mib);
        break;
      case SubmitRule::kMinTime:
        good = number(pair.value, 1, 1'000'000, limits.min_time_min);
        break;
      default:
        good = number(pair.value, 0, 1'000'000, limits.max_time_min);
    }
    return good ? Outcome::kDone : Outcome::kBadValue;
  }
  return Outcome::kUnknownKey;
}

template <std::size_t size>
bool path(std::string_view value, char (&out)[size]) {
  return !value.empty() && value[0] == '/' && copy(value, out);
}

/// HOST, HOST:PORT, ADDRESS or [ADDRESS]:PORT.
bool parse_collector(std::string_view text, SiteConfig& config) {
  const bool bracket = !text.empty() && text.front() == '[';
  std::size_t end = text.size();
  if (bracket) {
    for (end = 1; end < text.size() && text[end] != ']';) ++end;
    if (end == text.size()) return false;
  }
  std::size_t colon = text.size(), colons = 0;
  for (std::size_t i = bracket ? end : 0; i < text.size(); ++i) {
    if (text[i] == ':' && ++colons == 1) colon = i;
  }
  if (!bracket && colons > 1) colon = text.size();  // a bare IPv6 address
  if (bracket && colon != end + 1) return false;
  const std::string_view host =
      bracket ? std::string_view(text.data() + 1, end - 1) : std::string_view(text.data(), colon);
  if (!copy(host, config.collector_host)) return false;
  if (colon == text.size()) return true;
  return number({text.data() + colon + 1, text.size() - colon - 1}, 1, 65535,
                config.collector_port);
}

/// Keys of the daemons. The outcome is kUnknownKey where it is none of them.
Outcome set_collector(const Pair& pair, SiteConfig& config, const char*& right) {
  bool good = false;
  if (equal(pair.key, "Collector")) {
    right = "HOST or HOST:PORT, an IPv6 address as [ADDRESS]:PORT";
    good = parse_collector(pair.value, config);
  } else if (equal(pair.key, "CollectorAddress")) {
    right = "an address of this host, :: for all of them";
    good = copy(pair.value, config.collector_address);
  } else if (equal(pair.key, "TrustedUsers")) {
    right = "users (names or numbers), separated by commas";
    good = copy(pair.value, config.trusted_users);
  } else if (equal(pair.key, "MungeSocket")) {
    right = "an absolute path of at most 107 characters";
    good = path(pair.value, config.munge_socket);
  } else if (equal(pair.key, "NodeDatabase")) {
    right = "an absolute path of at most 255 characters";
    good = path(pair.value, config.node_db);
  } else if (equal(pair.key, "SampleDays")) {
    right = "days, from 1 to 36500; 0 = for ever";
    good = number(pair.value, 0, 36500, config.sample_days);
  } else if (equal(pair.key, "MaxDatabase")) {
    right = "MiB, or with a suffix K, M, G, T; 0 = no limit";
    good = parse_mib(pair.value, config.database_most_mib);
  } else {
    return Outcome::kUnknownKey;
  }
  return good ? Outcome::kDone : Outcome::kBadValue;
}

/// Keys of the site as a whole, beside kLimitKeys.
Outcome set_site(const Pair& pair, SiteConfig& config, const char*& right) {
  const Outcome of_collector = set_collector(pair, config, right);
  if (of_collector != Outcome::kUnknownKey) return of_collector;
  bool good = false;
  if (equal(pair.key, "AdviceTable")) {
    right = "an absolute path of at most 255 characters";
    good = path(pair.value, config.advice_table);
  } else if (equal(pair.key, "ClusterDatabase")) {
    right = "an absolute path of at most 255 characters";
    good = path(pair.value, config.cluster_db);
  } else if (equal(pair.key, "Threshold")) {
    right = "percent, from 0 to 100";
    good = number(pair.value, 0, 100, config.threshold_percent);
  } else if (equal(pair.key, "Policy")) {
    right = "efficiency>=0.7 (0.05 to 1), min-time or min-cost";
    good = parse_policy(pair.value, config.policy);
  } else if (equal(pair.key, "MinRuns")) {
    right = "a number from 1 to 1000";
    good = number(pair.value, 1, 1000, config.runs_least);
  } else if (equal(pair.key, "MemoryMargin")) {
    right = "percent, from 5 to 400";
    good = number(pair.value, 5, 400, config.memory_margin_percent);
  } else if (equal(pair.key, "MemoryMarginLeast")) {
    right = "MiB, from 16 to 1048576";
    good = number(pair.value, 16, 1 << 20, config.memory_margin_mib);
  } else if (equal(pair.key, "TimeMargin")) {
    right = "percent, from 10 to 1000";
    good = number(pair.value, 10, 1000, config.time_margin_percent);
  } else if (equal(pair.key, "AdviceExpiry")) {
    right = "days, from 1 to 3650";
    good = number(pair.value, 1, 3650, config.expiry_days);
  } else if (equal(pair.key, "WatchInterval")) {
    right = "seconds, from 1 to 86400";
    good = number(pair.value, 1, 86400, config.watch_interval_s);
  } else {
    std::uint16_t ignored = 0;
    return set_limit(pair, config.limits, ignored, right);
  }
  return good ? Outcome::kDone : Outcome::kBadValue;
}

/// Begins a rule if the pair names one.
Outcome begin_rule(const Pair& pair, SubmitRule& rule, const char*& right) {
  if (equal(pair.key, "Partition") || equal(pair.key, "Account")) {
    right = "a name of at most 63 characters, or (default) for jobs that name none";
    rule.scope =
        equal(pair.key, "Account") ? SubmitRule::Scope::kAccount : SubmitRule::Scope::kPartition;
    return copy(pair.value, rule.name) ? Outcome::kDone : Outcome::kBadValue;
  }
  if (equal(pair.key, "Uid")) {
    right = "a user's number (id -u NAME): slurmctld cannot wait for a name service";
    rule.scope = SubmitRule::Scope::kUid;
    return number(pair.value, 0, UINT32_MAX, rule.uid) ? Outcome::kDone : Outcome::kBadValue;
  }
  return Outcome::kUnknownKey;
}

/// The next word of `line`, split at its first '='.
bool next_pair(std::string_view& line, Pair& out) {
  while (!line.empty() && is_blank(line[0])) line.remove_prefix(1);
  if (line.empty() || line[0] == '#') return false;
  std::size_t size = 0, equals = 0;
  while (size < line.size() && !is_blank(line[size]) && line[size] != '#') {
    if (line[size] == '=' && equals == 0) equals = size;
    ++size;
  }
  out.key = {line.data(), equals != 0 ? equals : size};
  out.value = equals != 0 ? std::string_view(line.data() + equals + 1, size - equals - 1)
                          : std::string_view();
  line.remove_prefix(size);
  return true;
}

class Parser {
 public:
  Parser(SiteConfig& config, char* why, std::size_t why_size)
      : config_(config), why_(why), why_size_(why_size) {}

  bool line(std::string_view text) {
    ++number_;
    Pair pair;
    SubmitRule* rule = nullptr;
    for (bool first = true; next_pair(text, pair); first = false) {
      const char* right = nullptr;
      Outcome outcome = Outcome::kUnknownKey;
      if (first && config_.rules < kSubmitRulesMost) {
        outcome = begin_rule(pair, config_.rule[config_.rules], right);
        if (outcome == Outcome::kDone) rule = &config_.rule[config_.rules++];
      }
      if (outcome == Outcome::kUnknownKey) {
        outcome = rule != nullptr ? set_limit(pair, rule->limits, rule->given, right)
                                  : set_site(pair, config_, right);
      }
      if (outcome != Outcome::kDone) return wrong(pair, outcome, right, rule != nullptr);
    }
    return rule == nullptr || consistent(rule->limits, rule->given);
  }

  /// Of a rule only bounds that are both its own are compared: it goes over the site's.
  bool consistent(const SubmitLimits& limits, unsigned given = ~0U) {
    const auto fits = [given](unsigned both, std::uint64_t least, std::uint64_t most) {
      return (given & both) != both || most == 0 || most >= least;
    };
    const bool nodes =
        fits(SubmitRule::kMinNodes | SubmitRule::kMaxNodes, limits.min_nodes, limits.max_nodes);
    const bool memory = fits(SubmitRule::kMinMemory | SubmitRule::kMaxMemory, limits.min_memory_mib,
                             limits.max_memory_mib);
    const bool time =
        fits(SubmitRule::kMinTime | SubmitRule::kMaxTime, limits.min_time_min, limits.max_time_min);
    if (nodes && memory && time) return true;
    std::snprintf(why_, why_size_, "line %d: %s is larger than %s", number_,
                  !nodes    ? "MinNodes"
                  : !memory ? "MinMemory"
                            : "MinTime",
                  !nodes    ? "MaxNodes"
                  : !memory ? "MaxMemory"
                            : "MaxTime");
    return false;
  }

 private:
  bool wrong(const Pair& pair, Outcome outcome, const char* right, bool in_rule) {
    const int key = static_cast<int>(pair.key.size() < 40 ? pair.key.size() : 40);
    const int value = static_cast<int>(pair.value.size() < 60 ? pair.value.size() : 60);
    if (outcome == Outcome::kBadValue) {
      std::snprintf(why_, why_size_, "line %d: %.*s=%.*s: what is right is %s", number_, key,
                    pair.key.data(), value, pair.value.data(), right);
    } else if (config_.rules == kSubmitRulesMost && !in_rule) {
      std::snprintf(why_, why_size_,
                    "line %d: \"%.*s\" is no key of the site, and there is room for %zu rules only",
                    number_, key, pair.key.data(), kSubmitRulesMost);
    } else {
      std::snprintf(why_, why_size_,
                    "line %d: unknown key \"%.*s\"%s; every key is in the example sphase.conf",
                    number_, key, pair.key.data(), in_rule ? " in a rule" : "");
    }
    for (char* c = why_; *c != '\0'; ++c) {
      if (static_cast<unsigned char>(*c) < ' ' || *c == 127) *c = '?';
    }
    return false;
  }

  SiteConfig& config_;
  char* why_;
  std::size_t why_size_;
  int number_ = 0;
};

}  // namespace

const char* word_of(ResizeMode mode) { return kModes[static_cast<int>(mode)].word; }

bool parse_mode(std::string_view word, ResizeMode& out) {
  for (const Word& mode : kModes) {
    if (!equal(word, mode.word)) continue;
    out = mode.mode;
    return true;
  }
  return false;
}

bool parse_policy(std::string_view text, Policy& out) {
  constexpr std::string_view kEfficiency = "efficiency>=";
  if (equal(text, "min-time")) {
    out = {PolicyKind::kMinTime, 0};
    return true;
  }
  if (equal(text, "min-cost")) {
    out = {PolicyKind::kMinCost, 0};
    return true;
  }
  char number[16];
  if (text.size() <= kEfficiency.size() || !equal({text.data(), kEfficiency.size()}, kEfficiency)) {
    return false;
  }
  text.remove_prefix(kEfficiency.size());
  if (!copy(text, number)) return false;
  char* end = nullptr;
  const float least = std::strtof(number, &end);
  if (*end != '\0' || !(least >= 0.05F && least <= 1)) return false;
  out = {PolicyKind::kEfficiency, least};
  return true;
}

void write_policy(const Policy& policy, char* out, std::size_t size) {
  if (policy.kind == PolicyKind::kEfficiency) {
    std::snprintf(out, size, "efficiency>=%.2g", static_cast<double>(policy.efficiency_least));
  } else {
    std::snprintf(out, size, "%s", policy.kind == PolicyKind::kMinTime ? "min-time" : "min-cost");
  }
}

bool parse_site_config(std::string_view text, SiteConfig& out, char* why, std::size_t why_size) {
  out = SiteConfig();
  Parser parser(out, why, why_size);
  if (!text.empty() && std::memchr(text.data(), '\0', text.size()) != nullptr) {
    std::snprintf(why, why_size, "the file holds a zero byte: it is no text");
    return false;
  }
  while (!text.empty()) {
    std::size_t size = 0;
    while (size < text.size() && text[size] != '\n') ++size;
    if (!parser.line({text.data(), size})) return false;
    text.remove_prefix(size < text.size() ? size + 1 : size);
  }
  return parser.consistent(out.limits);
}

bool read_site_config(const char* path, SiteConfig& out, char* why, std::size_t why_size,
                      int& errno_out) {
  static_assert(kSiteConfigBytesMost <= 64 << 10, "it lives on the stack");
  char text[kSiteConfigBytesMost];
  std::size_t size = 0;
  errno_out = 0;
  const int file = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  ssize_t got = file < 0 ? -1 : 1;
  while (got > 0 && size < sizeof(text)) {
    got = ::read(file, text + size, sizeof(text) - size);
    if (got > 0) size += static_cast<std::size_t>(got);
  }
  if (got < 0) errno_out = errno;
  if (file >= 0) ::close(file);
  if (errno_out != 0) {
    std::snprintf(why, why_size, "%s: %s", path, strerror(errno_out));
    return false;
  }
  char inside[320];
  if (size == sizeof(text)) {
    std::snprintf(inside, sizeof(inside), "it is longer than %zu bytes", sizeof(text) - 1);
  } else if (parse_site_config({text, size}, out, inside, sizeof(inside))) {
    return true;
  }
  std::snprintf(why, why_size, "%s: %s", path, inside);
  return false;
}

void site_config_path(char* out, std::size_t size) {
  const char* own = std::getenv("SPHASE_CONF");
  const char* slurm = std::getenv("SLURM_CONF");
  if (own != nullptr && *own != '\0') {
    std::snprintf(out, size, "%s", own);
    return;
  }
  const char* slash = slurm != nullptr ? std::strrchr(slurm, '/') : nullptr;
  if (slash == nullptr) {
    std::snprintf(out, size, "/etc/slurm/sphase.conf");
    return;
  }
  std::snprintf(out, size, "%.*s/sphase.conf", static_cast<int>(slash - slurm), slurm);
}

}  // namespace sphase
