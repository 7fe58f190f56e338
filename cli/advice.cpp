#include "cli/advice.h"

#include <unistd.h>

#include <ctime>
#include <memory>

#include "cli/advice_print.h"
#include "cli/learned.h"
#include "cli/plan_json.h"
#include "collector/cluster_db.h"

namespace sphase {
namespace {

struct Arguments {
  std::string profile, db;
  bool json = false, sizes = false;
};

/// Loads what is known and hands it to `print`, which returns the exit code.
template <typename Print>
int with_learned(const Arguments& arguments, Print print) {
  const auto config = load_site_config();
  if (!config) return fail_with(config.error(), 2);
  auto db = read_cluster(cluster_path(arguments.db, *config));
  if (!db) return fail_with(db.error(), 1);
  auto known = list_profiles(*db);
  if (!known) return fail_with(known.error(), 1);
  const auto profile = choose_profile(*known, arguments.profile, ::getuid());
  if (!profile) return fail_with(profile.error(), 1);
  const auto learned = load_learned(*db, *profile, *config, std::time(nullptr));
  return learned ? print(*learned) : fail_with(learned.error(), 1);
}

int plan(const Learned& learned) {
  const AdviceHeader& head = learned.packed.head;
  if (!learned.advice.enough) {
    return fail_with("no plan yet: " + learned.advice.reason, 1);
  }
  if (head.expires_s < std::time(nullptr)) {
    return fail_with("no plan: the last run of " + learned.profile + " is too long ago", 1);
  }
  if (head.phases == 0) {
    return fail_with("no plan: no phase of " + learned.profile +
                         " is known that ended well; `sphase begin --help` says how to mark one",
                     1);
  }
  return print_out(plan_json(learned.profile, learned.packed) + '\n');
}

CLI::App* add(CLI::App& app, const char* name, const char* what, Arguments& arguments) {
  auto* command = app.add_subcommand(name, what);
  command
      ->add_option("profile", arguments.profile,
                   "a profile of yours (NAME, or ~HASH by its first digits), or a key UID/NAME")
      ->required()
      ->type_name("PROFILE");
  command
      ->add_option("--db", arguments.db,
                   "cluster.db (default: $SPHASE_DB, or ClusterDatabase of sphase.conf)")
      ->type_name("FILE");
  return command;
}

}  // namespace

void add_advice(CLI::App& app, int& code) {
  auto arguments = std::make_shared<Arguments>();
  auto* command = add(app, "advice", "what a job should ask for, and why", *arguments);
  command->add_flag("--json", arguments->json, "everything, for programs");
  command->add_flag("--sizes", arguments->sizes, "every number of nodes that was considered");
  command->footer("Example:\n  sphase advice solver\n  sphase advice 1001/~3f2a --sizes");
  command->callback([arguments, &code] {
    code = with_learned(*arguments, [&](const Learned& learned) {
      return print_out(arguments->json ? advice_json(learned, arguments->sizes)
                                       : advice_text(learned, arguments->sizes));
    });
  });
}

void add_plan(CLI::App& app, int& code) {
  auto arguments = std::make_shared<Arguments>();
  auto* command =
      add(app, "plan", "the plan of phases that a job gets in SPHASE_PLAN (JSON)", *arguments);
  command->add_flag("--json", arguments->json, "as it is anyway");
  command->footer("Example:\n  sphase plan solver");
  command->callback([arguments, &code] { code = with_learned(*arguments, plan); });
}

}  // namespace sphase
