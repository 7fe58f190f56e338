#include "job_submit/engine.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "common/profile_key.h"
#include "job_submit/decide.h"
#include "job_submit/lookup.h"
#include "job_submit/tell.h"
#include "spank/options.h"

namespace sphase {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

SiteConfig nothing_allowed() {
  SiteConfig config;
  config.limits.mode = ResizeMode::kOff;
  return config;
}

}  // namespace

// --- the configuration -------------------------------------------------------------------------

ConfigSlots::Held::Held(ConfigSlots& slots) : slots_(slots) {
  for (;;) {
    slot_ = slots_.current_.load();
    slots_.readers_[slot_].fetch_add(1);
    // Still the current one: the writer has seen us, and will not touch it.
    if (slots_.current_.load() == slot_) return;
    slots_.readers_[slot_].fetch_sub(1);
  }
}

ConfigSlots::Held::~Held() { slots_.readers_[slot_].fetch_sub(1); }

const SiteConfig& ConfigSlots::Held::operator*() const { return slots_.config_[slot_]; }

bool ConfigSlots::find_free(unsigned& slot) const {
  const unsigned current = current_.load();
  for (slot = 0; slot < kSlots; ++slot) {
    if (slot != current && readers_[slot].load() == 0) return true;
  }
  return false;
}

bool ConfigSlots::reload(const char* path, const Identity& identity, char* why,
                         std::size_t why_size) {
  unsigned slot = 0;
  if (!find_free(slot)) return false;  // it is tried again in a second
  int failed = 0;
  const bool good = read_site_config(path, config_[slot], why, why_size, failed);
  const bool absent = failed == ENOENT;
  if (!good) config_[slot] = absent ? SiteConfig() : nothing_allowed();
  current_.store(slot);
  seen_ = identity;
  if (absent) {
    std::snprintf(why, why_size, "there is no %s: the defaults hold (ResizeMode=advise)", path);
  } else if (good) {
    std::snprintf(why, why_size, "%s: read", path);
  } else {
    const std::size_t used = std::strlen(why);
    std::snprintf(why + used, why_size - used, "; no job is looked at until it is mended");
  }
  return true;
}

bool ConfigSlots::refresh(const char* path, std::int64_t now_ns, char* why, std::size_t why_size) {
  if (now_ns < next_look_ns_.load(std::memory_order_relaxed) || looking_.test_and_set()) {
    return false;
  }
  next_look_ns_.store(now_ns + kSecond, std::memory_order_relaxed);
  struct stat facts {};
  Identity now;
  if (::stat(path, &facts) != 0) {
    now.errno_of_stat = errno;
  } else {
    now = {facts.st_dev, facts.st_ino, facts.st_size,
           facts.st_mtim.tv_sec * kSecond + facts.st_mtim.tv_nsec, 0};
  }
  const bool news = !(now == seen_) && reload(path, now, why, why_size);
  looking_.clear();
  return news;
}

// --- the log -----------------------------------------------------------------------------------

bool LogGate::pass(std::int64_t now_ns, unsigned& skipped) {
  std::int64_t next = next_ns_.load();
  if (now_ns < next || !next_ns_.compare_exchange_strong(next, now_ns + 60 * kSecond)) {
    skipped_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  skipped = skipped_.exchange(0);
  return true;
}

// --- the plugin's own ----------------------------------------------------------------------------

namespace {

/// Never destroyed: slurmctld may unload a plugin while a thread is still inside it, and the plugin
/// is linked with -z nodelete for the same reason.
constinit ConfigSlots slots;
constinit LogGate gate;
char config_path[256];
std::atomic<sphase_log_function> log_function{nullptr};

void log_line(const char* line) {
  if (const auto log = log_function.load()) log(line);
}

void look_at_config() {
  char why[512];
  char line[600];
  if (!slots.refresh(config_path, clock_ns(CLOCK_MONOTONIC), why, sizeof(why))) return;
  std::snprintf(line, sizeof(line), "sphase: job_submit: %s", why);
  log_line(line);
}

/// A table that is not there is told once a minute; jobs go on without advice.
void tell_table(const char* path, AdviceState state, int failed) {
  if (failed == 0 && state != AdviceState::kDamaged && state != AdviceState::kOtherVersion) return;
  unsigned skipped = 0;
  char line[400];
  if (!gate.pass(clock_ns(CLOCK_MONOTONIC), skipped)) return;
  std::snprintf(line, sizeof(line),
                "sphase: job_submit: %s: %s; jobs go on without advice (%u times more since the "
                "last line)",
                path, failed != 0 ? strerror(failed) : word_of(state), skipped);
  log_line(line);
}

std::string_view view(const char* text) {
  return text != nullptr ? std::string_view(text) : std::string_view();
}

/// At most what is ever looked at: a script may be 4 MiB long.
std::string_view script_view(const char* text) {
  if (text == nullptr) return {};
  return {text, strnlen(text, kScriptBytesHashed)};
}

ProfileKey key_of(const sphase_request& request, std::string_view script) {
  sphase_job_options options{};
  char why[512];
  const bool named = request.telemetry != nullptr &&
                     sphase_job_options_parse(request.telemetry, &options, why, sizeof(why)) == 0;
  return profile_key(request.uid, named ? view(options.profile) : std::string_view(),
                     view(request.name), script);
}

void answer_request(const sphase_request& request, const SiteConfig& config,
                    sphase_answer& answer) {
  const std::string_view script = script_view(request.script);
  const ProfileKey key = key_of(request, script);
  Advice advice;
  int failed = 0;
  const AdviceState state =
      look_up(config.advice_table, key.view(), clock_ns(CLOCK_REALTIME) / kSecond, advice, failed);
  tell_table(config.advice_table, state, failed);
  const bool scan = state == AdviceState::kFound || request.explain;
  const ScriptFacts facts = scan ? scan_script(script) : ScriptFacts();
  const Decision decision = decide(request, config, facts, state, advice, answer);
  tell_audit(request, key.view(), decision, advice, answer);
  tell_plan(key.view(), decision, advice, answer);
  if (request.explain) {
    explain(request, key.view(), decision, advice, answer);
  } else {
    tell_user(request, key.view(), decision, advice, answer);
  }
}

/// Nothing is looked up for a job that wants none of it.
bool is_off(const sphase_request& request, const SiteConfig& config) {
  if (request.resize != nullptr && std::strcmp(request.resize, "off") == 0) return true;
  return limits_for(config, view(request.partition), view(request.account), request.uid).mode ==
         ResizeMode::kOff;
}

}  // namespace
}  // namespace sphase

extern "C" void sphase_submit_start(const char* path, sphase_log_function log) {
  using namespace sphase;
  if (path != nullptr) {
    std::snprintf(config_path, sizeof(config_path), "%s", path);
  } else {
    site_config_path(config_path, sizeof(config_path));
  }
  log_function.store(log);
  slots.look_again();
  look_at_config();
}

extern "C" void sphase_answer_request(const sphase_request* request, sphase_answer* answer) {
  using namespace sphase;
  answer->set = 0;
  answer->message[0] = answer->audit[0] = answer->plan[0] = '\0';
  look_at_config();
  const ConfigSlots::Held config(slots);
  if (!request->explain && is_off(*request, *config)) return;
  answer_request(*request, *config, *answer);
}
