#include "job_submit/decide.h"

#include <doctest/doctest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/job_submit/submission.h"

using namespace sphase;
using sphase::testing::add_phases;
using sphase::testing::kGiB;
using sphase::testing::Submission;

namespace {

using Change = std::function<void(Submission&)>;

/// A rule as a row: what is different from sbatch -N4 --mem=8G, and what must come of a field.
struct Row {
  const char* rule;
  Change change;
  Field field;
  std::uint64_t to;  // 0: it is left alone
  Why why;
};

void check(const Row& row) {
  CAPTURE(std::string(row.rule));
  Submission submission;
  row.change(submission);
  const Decision decision = submission.decide();
  const FieldResult& result = decision[row.field];
  CHECK(result.changed == (row.to != 0));
  if (row.to != 0) CHECK(result.to == row.to);
  CHECK(word_of(result.why) == std::string_view(word_of(row.why)));
}

SubmitRule& add_rule(Submission& submission, SubmitRule::Scope scope, const char* name) {
  SubmitRule& added = submission.config.rule[submission.config.rules++];
  added.scope = scope;
  std::snprintf(added.name, sizeof(added.name), "%s", name);
  return added;
}

}  // namespace

TEST_CASE("nodes: rules") {
  const Row rows[] = {
      {"asked for 4, one was used", [](Submission&) {}, Field::kNodes, 1, Why::kNone},
      {"not asked for",
       [](Submission& s) { s.request.nodes_min = s.request.nodes_max = SPHASE_UNSET; },
       Field::kNodes, 0, Why::kNotGiven},
      {"user named them and did not opt in", [](Submission& s) { s.request.resize = "advise"; },
       Field::kNodes, 0, Why::kUserSet},
      {"the site applies, nobody opted in",
       [](Submission& s) {
         s.request.resize = nullptr;
         s.config.limits.mode = ResizeMode::kApply;
       },
       Field::kNodes, 0, Why::kUserSet},
      {"the site applies and opts in",
       [](Submission& s) {
         s.request.resize = nullptr;
         s.config.limits.mode = ResizeMode::kApply;
         s.config.limits.opt_in = kOptNodes;
       },
       Field::kNodes, 1, Why::kNone},
      {"never more than was asked for", [](Submission& s) { s.advice.head.nodes = 9; },
       Field::kNodes, 0, Why::kFits},
      {"not below the site's floor", [](Submission& s) { s.config.limits.min_nodes = 2; },
       Field::kNodes, 2, Why::kNone},
      {"not above the site's ceiling",
       [](Submission& s) {
         s.advice.head.nodes = 3;
         s.config.limits.max_nodes = 2;
       },
       Field::kNodes, 2, Why::kNone},
      {"a range counts from its larger end", [](Submission& s) { s.request.nodes_min = 2; },
       Field::kNodes, 1, Why::kNone},
      {"a smaller difference than the threshold",
       [](Submission& s) {
         s.request.nodes_min = s.request.nodes_max = 100;
         s.advice.head.nodes = 95;
       },
       Field::kNodes, 0, Why::kSmall},
      {"the job names its nodes", [](Submission& s) { s.request.traits = SPHASE_NODE_LIST; },
       Field::kNodes, 0, Why::kNodeList},
      {"the job lays out its tasks", [](Submission& s) { s.request.traits = SPHASE_LAYOUT; },
       Field::kNodes, 0, Why::kLayout},
      {"tasks do not divide", [](Submission& s) { s.request.tasks = 6; }, Field::kNodes, 0,
       Why::kUneven},
      {"sbatch told the tasks in the environment",
       [](Submission& s) {
         s.request.tasks_per_node = 2;
         s.request.env_tasks = 8;
       },
       Field::kNodes, 1, Why::kNone},
      {"the environment tells other tasks", [](Submission& s) { s.request.env_tasks = 8; },
       Field::kNodes, 0, Why::kEnvironment},
      {"learned on another partition", [](Submission& s) { s.request.partition = "big"; },
       Field::kNodes, 0, Why::kOtherPartition},
      {"learned on this partition", [](Submission& s) { s.request.partition = "debug"; },
       Field::kNodes, 1, Why::kNone},
      {"nothing known", [](Submission& s) { s.advice.head.nodes = 0; }, Field::kNodes, 0,
       Why::kUnknown},
      {"srun asks its step for the same again", [](Submission& s) { s.request.batch = 0; },
       Field::kNodes, 0, Why::kInteractive},
  };
  for (const Row& row : rows) check(row);
}

namespace {

/// One run, killed for memory: a raise and nothing else.
void after_kill(Submission& s) {
  s.advice.head.flags = kAdviceOom;
  s.advice.head.nodes = s.advice.head.time_limit_s = s.advice.head.cpus_per_node = 0;
}

}  // namespace

TEST_CASE("memory: rules") {
  const Row rows[] = {
      {"8G asked for, 5G would do", [](Submission&) {}, Field::kMemory, 5120, Why::kNone},
      {"unset: set without anybody's opting in",
       [](Submission& s) {
         s.request.resize = nullptr;
         s.config.limits.mode = ResizeMode::kApply;
         s.request.memory_mib = SPHASE_UNSET64;
       },
       Field::kMemory, 5120, Why::kNone},
      {"set, and nobody opted in",
       [](Submission& s) {
         s.request.resize = nullptr;
         s.config.limits.mode = ResizeMode::kApply;
       },
       Field::kMemory, 0, Why::kUserSet},
      {"raised where the peak was higher", [](Submission& s) { s.request.memory_mib = 2048; },
       Field::kMemory, 5120, Why::kNone},
      {"raised by a little, too: it would be killed",
       [](Submission& s) { s.request.memory_mib = 5100; }, Field::kMemory, 5120, Why::kNone},
      {"not raised on another partition, which may have less",
       [](Submission& s) {
         s.request.memory_mib = 2048;
         s.request.partition = "big";
       },
       Field::kMemory, 0, Why::kOtherPartition},
      {"lowered on another partition", [](Submission& s) { s.request.partition = "big"; },
       Field::kMemory, 5120, Why::kNone},
      {"a smaller difference than the threshold",
       [](Submission& s) { s.request.memory_mib = 5600; }, Field::kMemory, 0, Why::kSmall},
      {"it fits", [](Submission& s) { s.request.memory_mib = 5120; }, Field::kMemory, 0,
       Why::kFits},
      {"the site's floor", [](Submission& s) { s.config.limits.min_memory_mib = 6000; },
       Field::kMemory, 6000, Why::kNone},
      {"the site allows less than it needs",
       [](Submission& s) { s.config.limits.max_memory_mib = 4096; }, Field::kMemory, 0,
       Why::kCeiling},
      {"--mem=0 is all of a node's memory", [](Submission& s) { s.request.memory_mib = 0; },
       Field::kMemory, 0, Why::kAllMemory},
      {"per CPU: one task of four CPUs",
       [](Submission& s) {
         s.request.memory_per_cpu = 1;
         s.request.memory_mib = 4000;
         s.request.cpus_per_task = 4;
       },
       Field::kMemory, 1280, Why::kNone},
      {"per CPU: two tasks on each node",
       [](Submission& s) {
         s.request.memory_per_cpu = 1;
         s.request.memory_mib = 8192;
         s.request.tasks_per_node = 2;
       },
       Field::kMemory, 2560, Why::kNone},
      {"per CPU, tasks known but not where they run",
       [](Submission& s) {
         s.request.nodes_min = s.request.nodes_max = SPHASE_UNSET;
         s.request.memory_per_cpu = 1;
         s.request.tasks = 16;
       },
       Field::kMemory, 0, Why::kCpusUnknown},
      {"on fewer nodes than it was seen on",
       [](Submission& s) {
         s.request.nodes_min = s.request.nodes_max = 1;
         s.advice.head.nodes = 2;
       },
       Field::kMemory, 0, Why::kFewerNodes},
      {"unset, on fewer nodes than it was seen on",
       [](Submission& s) {
         s.request.nodes_min = s.request.nodes_max = SPHASE_UNSET;
         s.request.memory_mib = SPHASE_UNSET64;
         s.advice.head.nodes = 2;
       },
       Field::kMemory, 0, Why::kFewerNodes},
      {"after a kill: raised",
       [](Submission& s) {
         after_kill(s);
         s.request.memory_mib = 4096;
       },
       Field::kMemory, 5120, Why::kNone},
      {"after a kill: not lowered", after_kill, Field::kMemory, 0, Why::kAfterKill},
      {"after a kill under another request: the default may be larger",
       [](Submission& s) {
         after_kill(s);
         s.request.memory_mib = SPHASE_UNSET64;
       },
       Field::kMemory, 0, Why::kAfterKill},
      {"after a kill under the site's default: raised",
       [](Submission& s) {
         after_kill(s);
         s.request.memory_mib = SPHASE_UNSET64;
         s.advice.head.flags |= kAdviceDefaultMemory;
       },
       Field::kMemory, 5120, Why::kNone},
      {"nothing known", [](Submission& s) { s.advice.head.memory_bytes = 0; }, Field::kMemory, 0,
       Why::kUnknown},
      {"srun asks its step for the same again", [](Submission& s) { s.request.batch = 0; },
       Field::kMemory, 0, Why::kInteractive},
      {"srun without --mem",
       [](Submission& s) {
         s.request.batch = 0;
         s.request.memory_mib = SPHASE_UNSET64;
       },
       Field::kMemory, 5120, Why::kNone},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("CPUs per task: rules") {
  const Change four = [](Submission& s) { s.request.cpus_per_task = 4; };
  const auto with_four = [&](Change more) {
    return [four, more](Submission& s) {
      four(s);
      more(s);
    };
  };
  const Row rows[] = {
      {"four asked for, two were busy", four, Field::kCpus, 2, Why::kNone},
      {"not asked for", [](Submission&) {}, Field::kCpus, 0, Why::kNotGiven},
      {"all were busy", with_four([](Submission& s) { s.advice.head.cpus_per_node = 4; }),
       Field::kCpus, 0, Why::kFits},
      {"never raised", with_four([](Submission& s) { s.advice.head.cpus_per_node = 8; }),
       Field::kCpus, 0, Why::kFits},
      {"shared by the tasks of a node", with_four([](Submission& s) {
         s.request.tasks_per_node = 2;
         s.advice.head.cpus_per_node = 3;
       }),
       Field::kCpus, 2, Why::kNone},
      {"memory is a default that may be per CPU",
       with_four([](Submission& s) { s.request.memory_mib = SPHASE_UNSET64; }), Field::kCpus, 0,
       Why::kMemoryFollows},
      {"memory is per CPU", with_four([](Submission& s) { s.request.memory_per_cpu = 1; }),
       Field::kCpus, 0, Why::kMemoryFollows},
      {"nobody opted in", with_four([](Submission& s) {
         s.request.resize = nullptr;
         s.config.limits.mode = ResizeMode::kApply;
       }),
       Field::kCpus, 0, Why::kUserSet},
      {"--mincpus as sbatch derives it",
       with_four([](Submission& s) { s.request.cpus_per_node_min = 4; }), Field::kCpus, 2,
       Why::kNone},
      {"--mincpus of the user's own",
       with_four([](Submission& s) { s.request.cpus_per_node_min = 6; }), Field::kCpus, 0,
       Why::kLayout},
      {"nothing known", with_four([](Submission& s) { s.advice.head.cpus_per_node = 0; }),
       Field::kCpus, 0, Why::kUnknown},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("time limit: rules") {
  const Row rows[] = {
      {"unset: set", [](Submission&) {}, Field::kTime, 30, Why::kNone},
      {"set: not lowered by apply alone", [](Submission& s) { s.request.time_limit = 600; },
       Field::kTime, 0, Why::kUserSet},
      {"set: lowered by apply,time",
       [](Submission& s) {
         s.request.time_limit = 600;
         s.request.resize = "apply,time";
       },
       Field::kTime, 30, Why::kNone},
      {"set: lowered by the site's OptIn=time",
       [](Submission& s) {
         s.request.time_limit = 600;
         s.config.limits.opt_in = kOptTime;
       },
       Field::kTime, 30, Why::kNone},
      {"the site's floor", [](Submission& s) { s.config.limits.min_time_min = 60; }, Field::kTime,
       60, Why::kNone},
      {"the site allows less than it needs",
       [](Submission& s) { s.config.limits.max_time_min = 20; }, Field::kTime, 0, Why::kCeiling},
      {"not set on another partition, whose limit is not known",
       [](Submission& s) { s.request.partition = "big"; }, Field::kTime, 0, Why::kOtherPartition},
      {"a smaller difference than the threshold",
       [](Submission& s) {
         s.request.time_limit = 31;
         s.request.resize = "apply,time";
       },
       Field::kTime, 0, Why::kSmall},
      {"nothing known", [](Submission& s) { s.advice.head.time_limit_s = 0; }, Field::kTime, 0,
       Why::kUnknown},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("the whole job is left alone") {
  struct JobRow {
    const char* rule;
    Change change;
    Why why;
  };
  const JobRow rows[] = {
      {"array", [](Submission& s) { s.request.traits = SPHASE_ARRAY; }, Why::kArray},
      {"heterogeneous", [](Submission& s) { s.request.traits = SPHASE_HET; }, Why::kHet},
      {"reservation", [](Submission& s) { s.request.traits = SPHASE_RESERVATION; },
       Why::kReservation},
      {"GRES", [](Submission& s) { s.request.traits = SPHASE_GRES; }, Why::kGres},
      {"helper", [](Submission& s) { s.request.traits = SPHASE_HELPER; }, Why::kHelper},
      {"sizes in the script", [](Submission& s) { s.script.explicit_sizes = true; },
       Why::kScriptSizes},
      {"no node", [](Submission& s) { s.request.nodes_min = 0; }, Why::kRefused},
      {"fewer nodes at most than at least", [](Submission& s) { s.request.nodes_max = 3; },
       Why::kRefused},
      {"no task", [](Submission& s) { s.request.tasks = 0; }, Why::kRefused},
      {"no CPU", [](Submission& s) { s.request.cpus_per_task = 0; }, Why::kRefused},
      {"no time", [](Submission& s) { s.request.time_limit = 0; }, Why::kRefused},
      {"nothing learned", [](Submission& s) { s.state = AdviceState::kMissing; }, Why::kNoAdvice},
      {"expired", [](Submission& s) { s.state = AdviceState::kExpired; }, Why::kNoAdvice},
      {"damaged", [](Submission& s) { s.state = AdviceState::kDamaged; }, Why::kNoAdvice},
      {"the job says off", [](Submission& s) { s.request.resize = "off"; }, Why::kOff},
      {"the site says off", [](Submission& s) { s.config.limits.mode = ResizeMode::kOff; },
       Why::kOff},
  };
  for (const JobRow& row : rows) {
    CAPTURE(std::string(row.rule));
    Submission submission;
    row.change(submission);
    const Decision decision = submission.decide();
    CHECK(word_of(decision.job) == std::string_view(word_of(row.why)));
    CHECK(submission.answer.set == 0);
  }
}

TEST_CASE("mode: the later one wins, but off at any place is off") {
  Submission s;
  s.request.resize = nullptr;
  s.request.partition = "debug";
  s.request.account = "physics";
  CHECK(s.decide().mode == ResizeMode::kAdvise);
  s.config.limits.mode = ResizeMode::kObserve;
  CHECK(s.decide().mode == ResizeMode::kObserve);
  SubmitRule& partition = add_rule(s, SubmitRule::Scope::kPartition, "debug");
  partition.given = SubmitRule::kMode;
  partition.limits.mode = ResizeMode::kAdvise;
  CHECK(s.decide().mode == ResizeMode::kAdvise);
  SubmitRule& account = add_rule(s, SubmitRule::Scope::kAccount, "physics");
  account.given = SubmitRule::kMode;
  account.limits.mode = ResizeMode::kApply;
  CHECK(s.decide().mode == ResizeMode::kApply);
  SubmitRule& user = add_rule(s, SubmitRule::Scope::kUid, "");
  user.uid = 1001;
  user.given = SubmitRule::kMode;
  user.limits.mode = ResizeMode::kObserve;
  CHECK(s.decide().mode == ResizeMode::kObserve);
  s.request.resize = "apply";
  CHECK(s.decide().mode == ResizeMode::kApply);
  CHECK(s.decide().mode_of_job);
  s.request.resize = "off";
  CHECK(s.decide().mode == ResizeMode::kOff);
  s.request.resize = "apply";
  for (SubmitRule* any : {&partition, &account, &user}) {
    const ResizeMode before = any->limits.mode;
    any->limits.mode = ResizeMode::kOff;
    CHECK(s.decide().mode == ResizeMode::kOff);
    any->limits.mode = before;
  }
}

TEST_CASE("advise and observe change nothing, and know what would be changed") {
  for (const char* mode : {"advise", "observe"}) {
    Submission s;
    s.request.resize = mode;
    const Decision decision = s.decide();
    CHECK(s.answer.set == 0);
    CHECK(decision[Field::kNodes].wanted);
    CHECK(decision[Field::kMemory].wanted);
  }
}

TEST_CASE("tasks and CPUs follow the nodes") {
  Submission s;
  s.request.tasks = 16;
  s.request.cpus_min = 64;
  s.request.cpus_per_task = 4;
  s.advice.head.nodes = 2;
  s.advice.head.cpus_per_node = 16;
  s.decide();
  CHECK(s.answer.nodes_min == 2);
  CHECK(s.answer.nodes_max == 2);
  CHECK(s.answer.tasks == 8);
  CHECK(s.answer.cpus_min == 32);
  s.advice.head.cpus_per_node = 8;  // of 16, four tasks a node: 2 CPUs each
  s.decide();
  CHECK(s.answer.cpus_per_task == 2);
  CHECK(s.answer.cpus_min == 16);
  s.request.env_tasks = 16;
  s.request.cpus_per_node_min = 16;
  s.decide();
  CHECK(s.answer.env_tasks == 8);
  CHECK(s.answer.cpus_per_node_min == 8);
}

TEST_CASE("a job that resizes itself begins with its first phase, and keeps the memory of all") {
  for (const bool by_script : {true, false}) {
    Submission s;
    add_phases(s.advice);
    s.script.resizes_itself = by_script;
    if (!by_script) s.request.resize = "apply,plan";
    const Decision decision = s.decide();
    CHECK(decision.resizable);
    CHECK(s.answer.nodes_max == 1);
    CHECK(s.answer.memory_mib == 5120);
    s.advice.phase[1].memory_bytes = 0;  // not known: may be more
    CHECK((s.decide(), s.answer.set & SPHASE_SET_MEMORY) == 0);
  }
  Submission s;  // the same job, if nothing can resize: the best single size
  add_phases(s.advice);
  CHECK_FALSE(s.decide().resizable);
  CHECK((s.answer.set & SPHASE_SET_NODES) == 0);
}

TEST_CASE(
    "whatever is asked for: no user's size is changed without consent, memory keeps its margin") {
  std::mt19937_64 random(20261130);
  const auto pick = [&](std::uint64_t most) { return random() % (most + 1); };
  const char* const options[] = {nullptr, "off", "observe", "advise", "apply", "apply,time", "x"};
  for (int i = 0; i < 200'000; ++i) {
    Submission s;
    const auto some = [&](std::uint32_t most) {
      return pick(3) == 0 ? SPHASE_UNSET : static_cast<std::uint32_t>(pick(most));
    };
    s.request.nodes_min = some(8);
    s.request.nodes_max = pick(1) != 0 ? s.request.nodes_min : some(8);
    s.request.tasks = some(32);
    s.request.tasks_per_node = some(4);
    s.request.cpus_per_task = some(8);
    s.request.env_tasks = some(32);
    s.request.cpus_min = some(64);
    s.request.cpus_per_node_min = some(16);
    s.request.time_limit = some(100);
    s.request.memory_mib = pick(3) == 0 ? SPHASE_UNSET64 : pick(9000);
    s.request.memory_per_cpu = static_cast<int>(pick(1));
    s.request.batch = static_cast<int>(pick(1));
    s.request.traits = pick(3) == 0 ? static_cast<unsigned>(pick(127)) : 0;
    s.request.resize = options[pick(6)];
    s.config.limits.mode = static_cast<ResizeMode>(pick(3));
    s.config.limits.opt_in = static_cast<std::uint8_t>(pick(3) == 0 ? pick(15) : 0);
    s.advice.head.nodes = static_cast<std::uint32_t>(pick(6));
    s.advice.head.cpus_per_node = static_cast<std::uint32_t>(pick(6));
    s.advice.head.memory_peak_bytes = pick(4 * kGiB);
    s.advice.head.memory_bytes = s.advice.head.memory_peak_bytes * 12 / 10;
    s.advice.head.time_limit_s = static_cast<std::uint32_t>(pick(9000));
    const Decision decision = s.decide();
    const bool own = s.request.resize != nullptr && strncmp(s.request.resize, "apply", 5) == 0;
    const bool time = own && strcmp(s.request.resize, "apply,time") == 0;
    unsigned consent = s.config.limits.opt_in;
    if (own) consent |= unsigned{kOptNodes} | kOptCpus | kOptMemory;
    if (time) consent |= kOptTime;
    const std::pair<Field, unsigned> fields[] = {{Field::kNodes, kOptNodes},
                                                 {Field::kCpus, kOptCpus},
                                                 {Field::kMemory, kOptMemory},
                                                 {Field::kTime, kOptTime}};
    for (const auto& [field, bit] : fields) {
      const FieldResult& result = decision[field];
      if (result.changed && !result.was_unset) REQUIRE((consent & bit) != 0);
      if (result.changed) REQUIRE(decision.mode == ResizeMode::kApply);
    }
    if (s.config.limits.mode == ResizeMode::kOff) REQUIRE(s.answer.set == 0);
    if (s.answer.set & SPHASE_SET_NODES) {
      REQUIRE(s.answer.nodes_max >= 1);
      REQUIRE(s.answer.nodes_max < decision[Field::kNodes].from);
      if (s.answer.set & SPHASE_SET_TASKS) REQUIRE(s.answer.tasks >= s.answer.nodes_min);
    }
    if (s.answer.set & SPHASE_SET_CPUS_MIN) REQUIRE(s.answer.cpus_min >= 1);
    if (s.answer.set & SPHASE_SET_TIME)
      REQUIRE(s.answer.time_limit >= s.config.limits.min_time_min);
    if (s.answer.set & SPHASE_SET_MEMORY) {
      std::uint64_t per_node = s.answer.memory_mib << 20;
      if (s.request.memory_per_cpu) {
        const std::uint64_t tasks =
            s.request.tasks_per_node != SPHASE_UNSET ? s.request.tasks_per_node
            : s.request.tasks == SPHASE_UNSET        ? 1
            : s.request.nodes_min != SPHASE_UNSET ? s.request.tasks / decision[Field::kNodes].from
                                                  : s.request.tasks;
        const std::uint64_t cpus =
            s.request.cpus_per_task != SPHASE_UNSET ? s.request.cpus_per_task : 1;
        per_node *= tasks * cpus;
      }
      REQUIRE(per_node >= s.advice.head.memory_bytes);
    }
  }
}
