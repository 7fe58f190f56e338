// sphase.conf: what the site decides. Read by the job_submit plugin (inside slurmctld: libc only,
// no allocation), by sphase-collector and by sphase. Every key: slurm-conf-examples/sphase.conf.
//
// Slurm's form: `Key=Value` pairs separated by blanks, keys in any case, '#' begins a comment. A
// line that begins with Partition=, Account= or Uid= is a rule for those jobs alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sphase {

/// What may be done to a job, from nothing to everything.
enum class ResizeMode : std::uint8_t { kOff, kObserve, kAdvise, kApply };
const char* word_of(ResizeMode mode);
/// False: no such mode.
bool parse_mode(std::string_view word, ResizeMode& out);

/// Fields that the user set and that may be changed all the same.
enum OptIn : std::uint8_t { kOptNodes = 1, kOptCpus = 2, kOptMemory = 4, kOptTime = 8 };

/// What the job_submit plugin keeps to. Memory in MiB, time in minutes, 0 = no limit.
struct SubmitLimits {
  ResizeMode mode = ResizeMode::kAdvise;
  std::uint8_t opt_in = 0;  // OptIn
  std::uint32_t min_nodes = 1, max_nodes = 0;
  std::uint64_t min_memory_mib = 100, max_memory_mib = 0;
  std::uint32_t min_time_min = 10, max_time_min = 0;
};

/// One rule line; only the fields in `given` count.
struct SubmitRule {
  enum class Scope : std::uint8_t { kPartition, kAccount, kUid };
  enum Given : std::uint16_t {
    kMode = 1,
    kOptIn = 2,
    kMinNodes = 4,
    kMaxNodes = 8,
    kMinMemory = 16,
    kMaxMemory = 32,
    kMinTime = 64,
    kMaxTime = 128
  };
  Scope scope = Scope::kPartition;
  char name[64] = {};  // partition or account; "(default)": jobs that name none
  std::uint32_t uid = 0;
  std::uint16_t given = 0;
  SubmitLimits limits;
};

inline constexpr std::size_t kSubmitRulesMost = 128;
inline constexpr std::size_t kSiteConfigBytesMost = 64 << 10;

enum class PolicyKind : std::uint8_t { kEfficiency, kMinTime, kMinCost };

/// Which size is the best one.
struct Policy {
  PolicyKind kind = PolicyKind::kEfficiency;
  float efficiency_least = 0.7F;  // T(1) / (n T(n)), for kEfficiency
};

/// "efficiency>=0.7", "min-time", "min-cost". False: none of them.
bool parse_policy(std::string_view text, Policy& out);
/// The same, into `out` (24 bytes are enough).
void write_policy(const Policy& policy, char* out, std::size_t size);

struct SiteConfig {
  char advice_table[256] = "/var/lib/sphase/advice.cdb";
  char cluster_db[256] = "/var/lib/sphase/cluster.db";
  std::uint32_t threshold_percent = 10;  // smaller changes are not worth a word
  // Learning.
  Policy policy;
  std::uint32_t runs_least = 3;
  std::uint32_t memory_margin_percent = 20, memory_margin_mib = 64;  // the larger one counts
  std::uint32_t time_margin_percent = 50;
  std::uint32_t expiry_days = 90;
  std::uint32_t watch_interval_s = 60;
  // The collector and its nodes.
  char collector_host[256] = "";  // Collector=HOST[:PORT]; "": there is none
  std::uint32_t collector_port = 6825;
  char collector_address[64] = "::";  // that `serve` listens at
  char trusted_users[256] = "root,slurm";
  char munge_socket[108] = "";  // "": munged's usual place
  char node_db[256] = "/var/spool/sphase/%n/node.db";
  std::uint32_t sample_days = 30;       // 0: samples are kept for ever
  std::uint64_t database_most_mib = 0;  // 0: no cap
  // Acting.
  SubmitLimits limits;
  std::uint32_t rules = 0;
  SubmitRule rule[kSubmitRulesMost];
};

/// Parses a whole file over the defaults in `out`. False: `why` says in one line what is wrong on
/// which line and what would be right; `out` is of no use then.
bool parse_site_config(std::string_view text, SiteConfig& out, char* why, std::size_t why_size);

/// Reads the file at `path`. `errno_out` != 0: it could not be read (ENOENT: there is none), and
/// `why` says so.
bool read_site_config(const char* path, SiteConfig& out, char* why, std::size_t why_size,
                      int& errno_out);

/// The limits for one job: the site's, over them those of its partition, account and uid, the later
/// ones winning; but a mode of `off` at any place is off. A job may name several partitions
/// ("a,b"): each one's rule is applied in turn.
SubmitLimits limits_for(const SiteConfig& config, std::string_view partitions,
                        std::string_view account, std::uint32_t uid);

/// $SPHASE_CONF, or sphase.conf beside $SLURM_CONF, or /etc/slurm/sphase.conf.
void site_config_path(char* out, std::size_t size);

}  // namespace sphase
