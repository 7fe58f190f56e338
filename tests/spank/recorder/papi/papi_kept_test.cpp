// The probe's result kept in run_dir.
#include <doctest/doctest.h>

#include "spank/recorder/papi/papi_probe.h"
#include "tests/common/tools.h"
#include "tests/spank/recorder/papi/papi_fake.h"

using namespace sphase;
using sphase::testing::FakePapi;
using sphase::testing::mode_of;
using sphase::testing::names_in;
using sphase::testing::TempFolder;
using sphase::testing::text_of;

namespace {

PapiPlan some_plan() {
  PapiPlan plan;
  plan.tier = {"papi-hw", "not counted: X (y)"};
  plan.events = {"PAPI_TOT_INS", "perf::LLC:u=1"};
  plan.multiplexed = true;
  plan.descriptors = 2;
  return plan;
}

/// A folder in which a first recorder has asked the node.
struct Asked {
  Asked() {
    first = again();
    path = folder / names_in(folder.path()).at(0);
  }
  PapiPlan again() { return probe_papi_once(papi.api(), "PAPI_TOT_INS", folder.path()); }
  /// True if the next recorder asks the node itself, and gets the same.
  bool asks_again() {
    const int before = papi.inits;
    CHECK(again() == first);
    return papi.inits > before;
  }
  FakePapi papi;
  TempFolder folder;
  PapiPlan first;
  std::string path;
};

}  // namespace

TEST_CASE("a plan comes back as it was, under its own key alone") {
  const PapiPlan plan = some_plan();
  CHECK(parse_kept_plan(kept_plan(plan, "k"), "k") == plan);
  CHECK_FALSE(parse_kept_plan(kept_plan(plan, "k"), "other"));
  PapiPlan none;
  none.tier.reason = "no PMU";
  CHECK(parse_kept_plan(kept_plan(none, "k"), "k") == none);
}

TEST_CASE("a kept plan that is cut or changed anywhere is none") {
  const std::string text = kept_plan(some_plan(), "k");
  for (std::size_t i = 0; i < text.size(); ++i) {
    CAPTURE(i);
    CHECK_FALSE(parse_kept_plan(text.substr(0, i), "k"));
    std::string changed = text;
    changed[i] ^= 1;
    CHECK_FALSE(parse_kept_plan(changed, "k"));
  }
}

TEST_CASE("a plan that makes no sense is none, although its checksum is right") {
  PapiPlan plan = some_plan();
  plan.tier.source = "none";
  CHECK_FALSE(parse_kept_plan(kept_plan(plan, "k"), "k"));
  plan = some_plan();
  plan.descriptors = 1000;
  CHECK_FALSE(parse_kept_plan(kept_plan(plan, "k"), "k"));
  plan = some_plan();
  plan.events.resize(9, "X");
  CHECK_FALSE(parse_kept_plan(kept_plan(plan, "k"), "k"));
}

TEST_CASE("the second recorder does not ask the node again") {
  Asked node;
  CHECK(node.papi.inits == 1);
  CHECK_FALSE(node.asks_again());
  CHECK(mode_of(node.path) == 0600);
  CHECK(names_in(node.folder.path()).size() == 1);
}

TEST_CASE("another PAPI, or other events, are asked about anew") {
  Asked node;
  PapiApi newer = node.papi.api();
  newer.library = node.folder.write("libpapi.so", "a newer one");
  (void)probe_papi_once(newer, "PAPI_TOT_INS", node.folder.path());
  CHECK(node.papi.inits == 2);
  (void)probe_papi_once(newer, "PAPI_TOT_CYC", node.folder.path());
  CHECK(node.papi.inits == 3);
}

TEST_CASE("where nothing can be counted the next recorder need not even load PAPI") {
  FakePapi papi;
  papi.known.clear();
  papi.kernel_errno = ENOENT;
  const TempFolder folder;
  PapiApi api = papi.api();
  api.library = folder.write("libpapi.so", "one");
  CHECK_FALSE(kept_none("A", folder.path()));  // not asked yet
  const PapiPlan plan = probe_papi_once(api, "A", folder.path());
  REQUIRE(plan.tier.source == "none");
  CHECK(kept_none("A", folder.path()) == plan);
  CHECK_FALSE(kept_none("B", folder.path()));
  folder.write("libpapi.so", "another one");
  CHECK_FALSE(kept_none("A", folder.path()));
}

TEST_CASE("where something can be counted PAPI is loaded") {
  Asked node;
  CHECK_FALSE(kept_none("PAPI_TOT_INS", node.folder.path()));
}

TEST_CASE("whatever users ask for, there are at most 16 files") {
  Asked node;
  for (int i = 0; i < 100; ++i) {
    (void)probe_papi_once(node.papi.api(), "PAPI_" + std::to_string(i), node.folder.path());
  }
  CHECK(names_in(node.folder.path()).size() <= 16);
}

TEST_CASE("a file that others could have written is ignored, and replaced") {
  Asked node;
  REQUIRE(chmod(node.path.c_str(), 0622) == 0);
  CHECK(node.asks_again());
  CHECK_FALSE(node.asks_again());
}

TEST_CASE("a link is not followed") {
  Asked node;
  const std::string other = node.folder / "other";
  REQUIRE(rename(node.path.c_str(), other.c_str()) == 0);
  REQUIRE(symlink(other.c_str(), node.path.c_str()) == 0);
  const std::string text = text_of(other);
  CHECK(node.asks_again());
  CHECK(text_of(other) == text);
}

TEST_CASE("somebody else's file is ignored (needs root)") {
  Asked node;
  if (geteuid() != 0 || chown(node.path.c_str(), 12345, 12345) != 0) {
    MESSAGE("skipped: only root can give a file away");
    return;
  }
  CHECK(node.asks_again());
}

TEST_CASE("a pipe in the file's place does not hang, and is replaced") {
  Asked node;
  REQUIRE(unlink(node.path.c_str()) == 0);
  REQUIRE(mkfifo(node.path.c_str(), 0600) == 0);
  CHECK(node.asks_again());
  CHECK_FALSE(node.asks_again());
}

TEST_CASE("a folder that is not there only costs the asking") {
  FakePapi papi;
  CHECK(probe_papi_once(papi.api(), "PAPI_TOT_INS", "/nonexistent").tier.source == "papi-hw");
}
