// The state that the plugin keeps between submissions: the site's configuration and the time of the
// last log line. Calls may come from several threads at once (Slurm 23.02 and later).
#pragma once

#include <atomic>
#include <cstdint>

#include "common/site_config.h"
#include "job_submit/request.h"

namespace sphase {

/// sphase.conf as it was last read. No lock: a reader holds a slot, the one thread that reloads
/// writes another one; while no slot is free the old configuration stays.
class ConfigSlots {
 public:
  /// A configuration that does not change while it is held.
  class Held {
   public:
    explicit Held(ConfigSlots& slots);
    ~Held();
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    const SiteConfig& operator*() const;
    const SiteConfig* operator->() const { return &**this; }

   private:
    ConfigSlots& slots_;
    unsigned slot_;
  };

  /// Reads the file anew if it has changed: at most one stat() a second, by whichever thread comes
  /// first. Without a file the defaults hold; with a bad one the mode is off for every job. True:
  /// `why` says for the log that it was read, or what is wrong with it.
  bool refresh(const char* path, std::int64_t now_ns, char* why, std::size_t why_size);

  /// The next refresh() looks at once.
  void look_again() { next_look_ns_.store(0); }

 private:
  static constexpr unsigned kSlots = 4;
  struct Identity {
    std::uint64_t device = 0, inode = 0;
    std::int64_t size = -1, mtime_ns = 0;
    int errno_of_stat = 0;
    bool operator==(const Identity&) const = default;
  };

  bool reload(const char* path, const Identity& identity, char* why, std::size_t why_size);
  bool find_free(unsigned& slot) const;

  SiteConfig config_[kSlots];
  std::atomic<int> readers_[kSlots] = {};
  std::atomic<unsigned> current_{0};
  std::atomic<std::int64_t> next_look_ns_{0};
  std::atomic_flag looking_ = ATOMIC_FLAG_INIT;
  Identity seen_;  // guarded by looking_
};

/// Lets one line through per minute and counts the others.
class LogGate {
 public:
  /// True: say it now. `skipped` = how many were not said since the last one.
  bool pass(std::int64_t now_ns, unsigned& skipped);

 private:
  std::atomic<std::int64_t> next_ns_{0};
  std::atomic<unsigned> skipped_{0};
};

}  // namespace sphase
