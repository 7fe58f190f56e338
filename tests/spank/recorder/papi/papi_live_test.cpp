// Real PAPI on real processes: on this node as it is, and on one that seems to have counters
// (fake_pmu.c), for which a case runs itself once more with that library preloaded.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include <cstring>
#include <thread>

#include "common/clock.h"
#include "spank/recorder/papi/papi_source.h"
#include "tests/common/tools.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

constexpr std::int64_t kBurnNs = 20'000'000;
const char* const kInside = "SPHASE_TEST_FAKE_PMU";

/// True inside. Outside it runs `test_case` inside, with FAKE_PMU_ERRNO=`failure` if that is not 0.
bool with_fake_pmu(const char* test_case, int failure = 0) {
  if (std::getenv(kInside) != nullptr) return true;
  const int code = in_child([&] {
    setenv(kInside, "1", 1);
    setenv("LIBPFM_FORCE_PMU", "skx", 1);
    setenv("LD_PRELOAD", SPHASE_FAKE_PMU, 1);
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1);
    if (failure != 0) setenv("FAKE_PMU_ERRNO", std::to_string(failure).c_str(), 1);
    execl("/proc/self/exe", "papi", ("--test-case=" + std::string(test_case)).c_str(), nullptr);
    return 127;
  });
  CHECK(code == 0);
  return false;
}

/// True if PAPI is there and the kernel has software events, which stand for the hardware's.
bool can_count() {
  if (const auto api = load_papi(); !api) {
    MESSAGE("skipped: " << api.error());
    return false;
  }
  PapiApi kernel;
  use_kernel(kernel);
  if (const int code = kernel.kernel_refusal(); code != 0) {
    MESSAGE("skipped: no software events either: " << std::strerror(code));
    return false;
  }
  return true;
}

void burn() {
  const std::int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + kBurnNs;
  while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
  }
}

/// A child that does what it is told: burn CPU time itself, in a thread, or in a child of its own.
class Worker {
 public:
  Worker() {
    REQUIRE(pipe(orders_) == 0);
    REQUIRE(pipe(answers_) == 0);
    pid_ = start_child([this] { return obey(); });
  }
  ~Worker() {
    end();
    for (const int fd : {orders_[0], orders_[1], answers_[0], answers_[1]}) close(fd);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  int pid() const { return pid_; }
  void run(char order) {
    REQUIRE(write(orders_[1], &order, 1) == 1);
    REQUIRE(read(answers_[0], &order, 1) == 1);
  }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    wait_for(pid_);
    pid_ = -1;
  }

 private:
  int obey() {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char order = 0;
    while (read(orders_[0], &order, 1) == 1) {
      if (order == 's') burn();
      if (order == 't') std::thread(burn).join();
      if (order == 'c') in_child([] { return burn(), 0; });
      if (write(answers_[1], &order, 1) != 1) return 1;
    }
    return 0;
  }
  int orders_[2] = {};
  int answers_[2] = {};
  pid_t pid_ = -1;
};

/// "Instructions", which are CPU time in ns here.
std::int64_t instructions(PapiSource& source, std::uint32_t task = 0) {
  const auto& counts = source.read(task);
  REQUIRE(!counts.empty());
  REQUIRE(counts[0].value);
  return *counts[0].value;
}

bool about_one_burn(std::int64_t ns) { return ns >= kBurnNs && ns < 2 * kBurnNs; }

}  // namespace

TEST_CASE(
    "on this node as it is PAPI counts, or there is a sentence why not (needs a node without "
    "counters)") {
  const TempFolder folder;
  const auto source = open_papi_source("", folder.path());
  const Tier tier = source->tier();
  CAPTURE(tier.reason);
  if (tier.source != "none") {
    CHECK(!source->names().empty());
    MESSAGE("skipped: this node has counters");
    return;
  }
  CHECK(tier.reason.size() > 20);
  CHECK(source->names().empty());
  const Status attached = source->attach(0, getpid());
  REQUIRE_FALSE(attached);
  CHECK(attached.error() == tier.reason);
  CHECK(open_papi_source("", folder.path())->tier().reason == tier.reason);
}

TEST_CASE(
    "a task is counted with its threads and its children, from read to read (needs PAPI and perf "
    "events)") {
  if (!with_fake_pmu("a task is counted with its threads*") || !can_count()) return;
  const TempFolder folder;
  const auto source = open_papi_source("PAPI_TOT_INS+PAPI_TOT_CYC", folder.path());
  CHECK(source->names().size() == 2);
  Worker worker;
  REQUIRE(source->attach(0, worker.pid()));
  std::int64_t last = instructions(*source);
  CHECK(last < kBurnNs);
  for (const char order : {'s', 't', 'c'}) {
    CAPTURE(order);
    worker.run(order);
    const std::int64_t now = instructions(*source);
    CHECK(about_one_burn(now - last));
    last = now;
  }
  CHECK(*source->read(0)[1].value > 0);  // page faults
}

TEST_CASE(
    "what a task did is there after it has ended, and after it was detached (needs PAPI and perf "
    "events)") {
  if (!with_fake_pmu("what a task did is there*") || !can_count()) return;
  const TempFolder folder;
  const auto source = open_papi_source("PAPI_TOT_INS", folder.path());
  Worker worker;
  REQUIRE(source->attach(0, worker.pid()));
  worker.run('s');
  worker.end();
  CHECK(about_one_burn(instructions(*source)));
  source->detach(0);
  CHECK(about_one_burn(instructions(*source)));
}

TEST_CASE("one thread attaches, another reads, a third detaches (needs PAPI and perf events)") {
  if (!with_fake_pmu("one thread attaches*") || !can_count()) return;
  const TempFolder folder;
  const auto source = open_papi_source("PAPI_TOT_INS+PAPI_DP_OPS", folder.path());
  Worker first;
  Worker second;
  std::thread([&] { CHECK(source->attach(0, first.pid())); }).join();
  std::thread([&] { CHECK(source->attach(1, second.pid())); }).join();
  first.run('s');
  std::int64_t count = 0;
  std::thread([&] { count = source->read(0).at(0).value.value_or(-1); }).join();
  CHECK(about_one_burn(count));
  std::thread([&] { count = source->read(1).at(0).value.value_or(kBurnNs); }).join();
  CHECK(count < kBurnNs);
  std::thread([&] { source->detach(0); }).join();
  CHECK(about_one_burn(instructions(*source, 0)));
}

TEST_CASE("multiplexed events of a real task have times (needs PAPI and perf events)") {
  if (!with_fake_pmu("multiplexed events of a real task*") || !can_count()) return;
  auto api = load_papi();
  REQUIRE(api);
  PapiPlan plan;
  plan.tier.source = "papi-hw";
  plan.events = {"PAPI_TOT_INS", "PAPI_TOT_CYC"};
  plan.multiplexed = true;
  plan.descriptors = 2;
  PapiSource source(*api, plan);
  Worker worker;
  REQUIRE(source.attach(0, worker.pid()));
  worker.run('s');
  const PapiCount count = source.read(0)[0];
  REQUIRE(count.value);
  REQUIRE(count.time_enabled_ns);
  REQUIRE(count.time_running_ns);
  CHECK(about_one_burn(*count.value));
  CHECK(*count.time_running_ns >= kBurnNs);
  CHECK(*count.time_enabled_ns >= *count.time_running_ns);
}

TEST_CASE("a task that is gone has no counters (needs PAPI and perf events)") {
  if (!with_fake_pmu("a task that is gone has no counters*") || !can_count()) return;
  const TempFolder folder;
  const auto source = open_papi_source("PAPI_TOT_INS", folder.path());
  Worker worker;
  const int pid = worker.pid();
  worker.end();
  const Status attached = source->attach(0, pid);
  REQUIRE_FALSE(attached);
  CHECK(attached.error().find("cannot attach PAPI") == 0);
}

TEST_CASE("PAPI calls itself active and the kernel says EACCES (needs PAPI and perf events)") {
  if (!with_fake_pmu("PAPI calls itself active*", EACCES)) return;
  const TempFolder folder;
  const auto source = open_papi_source("PAPI_TOT_INS", folder.path());
  CHECK(source->tier().source == "none");
  if (!load_papi()) {
    MESSAGE("skipped: " << source->tier().reason);
    return;
  }
  CHECK(source->tier().reason.find("kernel.perf_event_paranoid") != std::string::npos);
}
