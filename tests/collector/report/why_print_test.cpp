// Sources: cli/why_print.cpp, cli/observed.cpp.
#include "collector/report/why_print.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "collector/report/format.h"
#include "collector/report/observed.h"
#include "job_submit/decide.h"
#include "tests/cli/learned_fixture.h"

using namespace sphase;
using namespace sphase::testing;
using nlohmann::json;

namespace {

bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

constexpr const char* kLine =
    "sphase/1 profile=1001/solver mode=apply from=job advice=found runs=14 made=1764536000 "
    "asked=nodes:4,tasks:16,cpus:-,memory:8192,time:60 set=nodes:1,memory:5120 would=- "
    "left=cpus:not-given,time:user-set";

WhyFacts facts_of(const char* line) {
  WhyFacts facts;
  facts.job.cluster = "c1";
  facts.job.job_id = 123;
  facts.job.name = "solver";
  facts.job.user = "alice";
  facts.job.source = "slurmctld";
  facts.job.admin_comment = line;
  facts.audit = parse_audit(line);
  return facts;
}

}  // namespace

TEST_CASE("each field says what was asked for, what was done, and why it was left") {
  auto facts = facts_of(kLine);
  facts.runs = {run_of(101), run_of(102, 500, kObservedOom)};
  const std::string text = why_text(facts);
  CAPTURE(text);
  CHECK(has(text, "Job       123 (solver) of alice\n"));
  CHECK(has(text, "Profile   1001/solver\n"));
  CHECK(has(text, "(by its --phase-resize)"));
  CHECK(has(text, "found, from 14 runs, made "));
  CHECK(has(text, "nodes          4                  1"));
  CHECK(has(text, "8192 MiB per node  5120 MiB per node  changed"));
  CHECK(has(text, "as many per node as before"));
  CHECK(has(text, "1:00:00"));
  CHECK(has(text, "the user set it"));
  CHECK(has(text, "CPUs per task"));
  CHECK(has(text, "killed for memory"));
  CHECK(text.find("102") < text.find("101"));  // newest first
}

TEST_CASE("every reason of the plugin's has a sentence here") {
  for (int i = static_cast<int>(Why::kOff); i <= static_cast<int>(Why::kUnknown); ++i) {
    const std::string word = word_of(static_cast<Why>(i));
    CAPTURE(word);
    CHECK(why_left(word) != word);
  }
}

TEST_CASE("a report says in its head what was changed at submission, and what was only advised") {
  const auto line_of = [](const char* comment) { return submission_line(facts_of(comment).job); };
  CHECK(line_of(kLine) ==
        "nodes 4 -> 1, memory 8192 MiB per node -> 5120 MiB per node, by what was learned (sphase "
        "why 123)");
  CHECK(line_of("sphase/1 profile=1001/a asked=memory:100 set=- would=memory:200") ==
        "advised only: memory 100 MiB per node -> 200 MiB per node (sphase why 123)");
  CHECK(line_of("sphase/1 profile=1001/a asked=memory:100 set=- would=-").empty());
  CHECK(line_of("a ticket").empty());
}

TEST_CASE("what scontrol shows of a job is enough for its audit line") {
  const JobFacts facts = facts_shown(
      "JobId=12 ArrayJobId=3 JobName=solver UserId=alice(1001) GroupId=x(1) AdminComment=ticket 7; "
      "sphase/1 profile=1001/a mode=apply from=job advice=found runs=3 made=9 asked=nodes:4 "
      "set=nodes:1 would=- left=- WorkDir=/home/alice StdErr=/x\n");
  CHECK(facts.job_id == 12);
  CHECK(facts.name == "solver");
  CHECK(facts.user == "alice");
  const auto audit = parse_audit(facts.admin_comment.value_or(""));
  REQUIRE(audit);
  CHECK(audit->profile == "1001/a");
  CHECK(audit->set.nodes == 1);
  CHECK(facts_shown("slurm_load_jobs error: Invalid job id specified").job_id == 0);
  CHECK(facts_shown("").job_id == 0);
}

TEST_CASE("advised only, by the site") {
  const auto text = why_text(facts_of(
      "sphase/1 profile=1001/~3f2a90cc12ab34ef mode=advise from=site advice=found runs=3 made=1 "
      "asked=nodes:4,tasks:-,cpus:-,memory:2048/cpu,time:- set=- would=nodes:1 "
      "left=nodes:user-set,memory:fits"));
  CHECK(has(text, "(by the site)"));
  CHECK(has(text, "advised, not changed"));
  CHECK(has(text, "2048 MiB per CPU"));
  CHECK(has(text, "it fits"));
  CHECK(has(text, "are not known (any more)"));
}

TEST_CASE("a job that was left alone as a whole says why") {
  const auto text = why_text(
      facts_of("sphase/1 profile=1/x mode=apply from=site advice=none asked=nodes:1,time:4294967294"
               " set=- would=- left=job:no-advice"));
  CHECK(has(text, "Left      all of it as it was: there was no advice for it"));
  CHECK(has(text, "none: nothing was learned about it then"));
  CHECK(has(text, "unlimited"));
}

TEST_CASE("words of a newer plugin are shown as they are, harmless") {
  const auto text = why_text(
      facts_of("sphase/1 profile=1/x mode=new from=site advice=odd asked=nodes:1 set=- would=- "
               "left=nodes:brand-new"));
  CHECK(has(text, "brand-new"));
  auto facts = facts_of(kLine);
  facts.job.name = "\x1b[2J";
  facts.audit->profile = "1/\x1b[2J";
  facts.audit->left = {{"nodes", "\x1b[2J"}, {"job", "\x1b[2J"}};
  facts.audit->advice = facts.audit->mode = "\x1b";
  CHECK_FALSE(has(why_text(facts), "\x1b"));
  CHECK_NOTHROW(json::parse(why_json(facts)));
}

TEST_CASE("without a line it is said what is missing and why that may be") {
  JobFacts job;
  CHECK(has(why_no_audit(job), "the scheduler's record of this job is missing"));
  job.source = "slurmdbd";
  CHECK(has(why_no_audit(job), "no AdminComment: job_submit/phase_resize was not loaded"));
  job.admin_comment = "of the administrator";
  CHECK(has(why_no_audit(job), "holds no line of ours"));
  WhyFacts facts;
  const auto told = json::parse(why_json(facts));
  CHECK(told["audit"].is_null());
  CHECK(told["missing"].is_string());
  CHECK(json::parse(why_json(facts_of(kLine)))["missing"].is_null());
}

TEST_CASE("JSON holds the line's parts, and null for what was not set") {
  auto facts = facts_of(kLine);
  facts.runs = {run_of(101)};
  const auto told = json::parse(why_json(facts));
  CHECK(told["audit"]["asked"]["nodes"] == 4);
  CHECK(told["audit"]["asked"]["cpus_per_task"].is_null());
  CHECK(told["audit"]["changed"]["memory_mib"] == 5120);
  CHECK(told["audit"]["advised_only"]["nodes"].is_null());
  CHECK(told["audit"]["left"][1]["field"] == "time");
  CHECK(told["runs"][0]["phases"][2]["path"] == "solve");
  CHECK(told["runs"][0]["phases"][0]["memory_peak_bytes"] == 1000LL << 20);
}

TEST_CASE("of many runs the newest are shown, and how many there are beside them") {
  std::vector<ObservedJob> runs;
  for (int i = 0; i < 30; ++i) runs.push_back(run_of(1000 + i, 5000 - i));
  const auto text = observed_text(runs, 10);
  CHECK(has(text, "1029"));
  CHECK(has(text, "1020"));
  CHECK_FALSE(has(text, "1019"));
  CHECK(has(text, "… and 20 earlier ones"));
  CHECK(observed_json(runs).size() == 30);
  CHECK(ending_of(0) == "well");
  CHECK(ending_of(kObservedFailed | kObservedPartial) ==
        "failed or cancelled, some nodes told nothing");
}
