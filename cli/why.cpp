#include "cli/why.h"

#include <cstdio>
#include <memory>

#include "cli/learned.h"
#include "cli/run_command.h"
#include "collector/cluster_db.h"
#include "collector/report/why_print.h"

namespace sphase {
namespace {

struct Arguments {
  std::string job, db, cluster;
  bool json = false;
};

/// Runs of the profile that the advice can have been made from: those that had ended.
Result<std::vector<ObservedJob>> runs_before(Database& db, const Audit& audit) {
  if (audit.profile.empty() || !audit.made_s) return std::vector<ObservedJob>();
  auto runs = load_observed(db, audit.profile);
  if (!runs) return runs;
  std::erase_if(*runs, [&](const ObservedJob& run) { return run.end_s > *audit.made_s; });
  return runs;
}

Result<WhyFacts> from_database(Database& db, const JobSelector& selector) {
  const auto starts = load_timelines(db, selector);
  if (!starts) return Error{starts.error()};
  WhyFacts facts;
  facts.job = starts->back().job;
  if (facts.job.admin_comment) facts.audit = parse_audit(*facts.job.admin_comment);
  if (!facts.audit) return facts;
  auto runs = runs_before(db, *facts.audit);
  if (!runs) return Error{runs.error()};
  facts.runs = std::move(*runs);
  return facts;
}

/// An ordinary user cannot read the site's cluster.db, but slurmctld shows the audit line of every
/// job that it still knows.
Result<WhyFacts> from_slurmctld(const Arguments& arguments, const std::string& problem) {
  std::vector<std::string> command = {"scontrol", "--oneliner", "show", "job", arguments.job};
  if (!arguments.cluster.empty()) command.insert(command.begin() + 1, "-M" + arguments.cluster);
  const auto shown = run_command(command);
  if (!shown || shown->code != 0) return Error{problem};
  WhyFacts facts;
  facts.job = facts_shown(shown->text);
  if (!facts.job.job_id) return Error{problem};
  if (facts.job.admin_comment) facts.audit = parse_audit(*facts.job.admin_comment);
  std::fprintf(stderr,
               "sphase: %s; slurmctld was asked instead, which does not know the runs "
               "behind it\n",
               problem.c_str());
  return facts;
}

int why(const Arguments& arguments) {
  auto selector = parse_job_selector(arguments.job);
  if (!selector) return fail_with(selector.error(), 2);
  selector->cluster = arguments.cluster;
  const auto config = load_site_config();
  if (!config) return fail_with(config.error(), 2);
  auto db = read_cluster(cluster_path(arguments.db, *config));
  if (!db && !arguments.db.empty()) return fail_with(db.error(), 1);
  const auto found = db ? from_database(*db, *selector) : from_slurmctld(arguments, db.error());
  if (!found) return fail_with(found.error(), 1);
  const WhyFacts& facts = *found;
  if (arguments.json) {
    const int printed = print_out(why_json(facts));
    return facts.audit ? printed : 1;
  }
  return facts.audit ? print_out(why_text(facts)) : fail_with(why_no_audit(facts.job), 1);
}

}  // namespace

void add_why(CLI::App& app, int& code) {
  auto arguments = std::make_shared<Arguments>();
  auto* command =
      app.add_subcommand("why", "why a job got the sizes it has: asked, advised, changed, left");
  command->add_option("job", arguments->job, "123, 123_4, 123+1")->required()->type_name("JOB");
  command
      ->add_option("--db", arguments->db,
                   "cluster.db (default: $SPHASE_DB, or ClusterDatabase of sphase.conf)")
      ->type_name("FILE");
  command->add_option("-M,--cluster", arguments->cluster, "where several clusters have this job id")
      ->type_name("NAME");
  command->add_flag("--json", arguments->json, "everything, for programs");
  command->footer(
      "Where cluster.db cannot be read, slurmctld is asked (while it still knows the job).\n"
      "Example:\n  sphase why 1234");
  command->callback([arguments, &code] { code = why(*arguments); });
}

}  // namespace sphase
