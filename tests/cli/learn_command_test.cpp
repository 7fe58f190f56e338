// advice, plan, profile and why as a user runs them. Sources: cli/advice.cpp, cli/profile.cpp,
// cli/why.cpp.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "tests/cli/learned_fixture.h"
#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;
using nlohmann::json;

namespace {

struct Output {
  int code;
  std::string out, err;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

int lines_in(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

/// cluster.db with profile "solver" of the calling user (three runs), "young" (one run) and
/// "other" of another user; job 123 has an audit line, job 124 none.
class Commands : public ClusterFixture {
 public:
  Commands() {
    const std::string uid = std::to_string(::getuid());
    for (int i = 0; i < 3; ++i) save(uid + "/solver", 100 + i, 1000 - i);
    save(uid + "/young", 110, 500);
    save("4000000000/other", 111, 400);
    add_job(db(), {.job_id = 123});
    add_job(db(), {.job_id = 124});
    run_sql(db(), "UPDATE job SET admin_comment = 'sphase/1 profile=" + uid +
                      "/solver mode=apply from=job advice=found runs=3 made=" +
                      std::to_string(now_ - 100) +
                      " asked=nodes:4,memory:8192 set=nodes:1 would=- left=memory:fits'"
                      " WHERE job_id = 123");
  }

  Output run(const std::string& line) const {
    const std::string out = folder() / "stdout", err = folder() / "stderr";
    const std::string command =
        "unset SPHASE_DB SLURM_CONF; export SPHASE_CONF=" + (folder() / "sphase.conf") +
        "; S='" SPHASE_COMMAND "'; cd '" + folder().path() + "' && { " + line + "; } >'" + out +
        "' 2>'" + err + "' </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 255, text_of(out), text_of(err)};
  }

  std::int64_t now() const { return now_; }

 private:
  void save(const std::string& profile, std::int64_t job_id, std::int64_t ago_s) {
    auto run = run_of(job_id);
    run.profile = profile;
    run.end_s = now_ - ago_s;
    run.submit_s = run.start_s = run.end_s - 100;
    const auto saved = save_observed(db(), run, 0);
    REQUIRE_MESSAGE(saved, (saved ? "" : saved.error()));
  }

  std::int64_t now_ = std::time(nullptr);
};

}  // namespace

TEST_CASE("advice is given by name, as text and as JSON") {
  const Commands commands;
  const auto text = commands.run("$S advice solver --db cluster.db --sizes");
  CAPTURE(text.err);
  CHECK(text.code == 0);
  CHECK(text.err.empty());
  CHECK(has(text.out, "Advice      1 node"));
  const auto told = commands.run("SPHASE_DB=cluster.db $S advice solver --json");
  CHECK(json::parse(told.out)["advice"]["nodes"] == 1);
  const auto other = commands.run("$S advice 4000000000/other --db cluster.db");
  CHECK(other.code == 0);
  CHECK(has(other.out, "1 of the 3 runs that are needed"));
}

TEST_CASE("sphase.conf says where the database is, and what the policy is") {
  const Commands commands;
  commands.folder().write("sphase.conf",
                          "ClusterDatabase=" + commands.path() + "\nMinRuns=1 Policy=min-time\n");
  const auto told = commands.run("$S advice young --json");
  CAPTURE(told.err);
  REQUIRE(told.code == 0);
  CHECK(json::parse(told.out)["policy"] == "min-time");
  CHECK(json::parse(told.out)["enough"] == true);
  commands.folder().write("sphase.conf", "MinRuns=0\n");
  const auto wrong = commands.run("$S advice young --db cluster.db");
  CHECK(wrong.code == 2);
  CHECK(has(wrong.err, "line 1: MinRuns=0"));
  CHECK(lines_in(wrong.err) == 1);
}

TEST_CASE("plan prints one line of JSON, or says why there is none") {
  const Commands commands;
  const auto plan = commands.run("$S plan solver --db cluster.db");
  CHECK(plan.code == 0);
  CHECK(lines_in(plan.out) == 1);
  const auto told = json::parse(plan.out);
  CHECK(told["version"] == 1);
  CHECK(told["phases"][1]["path"] == "solve");
  CHECK(told["phases"][1]["nodes"] == 1);
  const auto none = commands.run("$S plan young --db cluster.db");
  CHECK(none.code == 1);
  CHECK(none.out.empty());
  CHECK(has(none.err, "no plan yet: 1 of the 3 runs"));
}

TEST_CASE("profiles are listed, shown, and forgotten") {
  const Commands commands;
  const auto list = commands.run("$S profile list --db cluster.db");
  CHECK(list.code == 0);
  CHECK(has(list.out, "/solver"));
  CHECK(has(list.out, "4000000000/other"));
  CHECK(
      json::parse(commands.run("$S profile list --json --db cluster.db").out)["profiles"].size() ==
      3);
  const auto show = commands.run("$S profile show solver --db cluster.db");
  CHECK(has(show.out, "102"));
  CHECK(has(show.out, "well"));
  CHECK(json::parse(commands.run("$S profile show solver --db cluster.db --json").out)["runs"]
            .size() == 3);
  const auto forgotten = commands.run("$S profile forget solver --db cluster.db");
  CHECK(forgotten.code == 0);
  CHECK(has(forgotten.out, "is forgotten"));
  const auto gone = commands.run("$S advice solver --db cluster.db");
  CHECK(gone.code == 1);
  CHECK(lines_in(gone.err) == 1);
  CHECK(json::parse(commands.run("$S profile forget young --json --db cluster.db").out)
            .contains("forgotten"));
}

TEST_CASE("why tells a job's story, or what is missing for it") {
  const Commands commands;
  const auto why = commands.run("$S why 123 --db cluster.db");
  CAPTURE(why.err);
  CHECK(why.code == 0);
  CHECK(has(why.out, "changed"));
  CHECK(has(why.out, "102"));
  const auto told = json::parse(commands.run("$S why 123 --json --db cluster.db").out);
  CHECK(told["audit"]["changed"]["nodes"] == 1);
  CHECK(told["runs"].size() == 3);
  const auto none = commands.run("$S why 124 --db cluster.db");
  CHECK(none.code == 1);
  CHECK(has(none.err, "job_submit/phase_resize was not loaded"));
  CHECK(lines_in(none.err) == 1);
  const auto null = commands.run("$S why 124 --json --db cluster.db");
  CHECK(null.code == 1);
  CHECK(json::parse(null.out)["audit"].is_null());
}

TEST_CASE("learned things: wrong usage is one line and 2, a failure is one line and 1") {
  const Commands commands;
  for (const char* wrong :
       {"$S advice", "$S advice solver --what", "$S plan", "$S profile", "$S profile nonsense",
        "$S profile show", "$S profile forget", "$S why", "$S why 12x --db cluster.db"}) {
    const auto result = commands.run(wrong);
    CAPTURE(wrong);
    CAPTURE(result.err);
    CHECK(result.code == 2);
    CHECK(lines_in(result.err) == 1);
    CHECK(result.out.empty());
  }
  for (const char* failing :
       {"$S advice none --db cluster.db", "$S advice other --db cluster.db",
        "$S advice solver --db none.db", "$S plan none --db cluster.db",
        "$S profile show none --db cluster.db", "$S profile forget none --db cluster.db",
        "$S profile list --db none.db", "$S why 77 --db cluster.db",
        "$S advice solver --db cluster.db >/dev/full", "$S why 123 --db cluster.db >/dev/full"}) {
    const auto result = commands.run(failing);
    CAPTURE(failing);
    CAPTURE(result.err);
    CHECK(result.code == 1);
    CHECK(lines_in(result.err) == 1);
  }
}

TEST_CASE("every learned command explains itself with an example") {
  const Commands commands;
  for (const char* command :
       {"advice", "plan", "profile", "profile list", "profile show", "profile forget", "why"}) {
    const auto result = commands.run(std::string("$S ") + command + " --help");
    CAPTURE(command);
    CHECK(result.code == 0);
    CHECK(has(result.out, "Example"));
  }
}
