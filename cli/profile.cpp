#include "cli/profile.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/learned.h"
#include "collector/cluster_db.h"
#include "collector/report/format.h"
#include "collector/report/observed.h"
#include "collector/report/table.h"

namespace sphase {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string profile, db;
  bool json = false, all = false;
};

std::string dump(const Json& json) {
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + '\n';
}

/// Opens cluster.db to read, lists what it knows, and goes on with `then(db, path, known)`.
template <typename Then>
int with_profiles(const Arguments& arguments, Then then) {
  const auto config = load_site_config();
  if (!config) return fail_with(config.error(), 2);
  const std::string path = cluster_path(arguments.db, *config);
  auto db = read_cluster(path);
  if (!db) return fail_with(db.error(), 1);
  const auto known = list_profiles(*db);
  return known ? then(*db, path, *known) : fail_with(known.error(), 1);
}

std::string list_json(const std::vector<ProfileLine>& known) {
  Json profiles = Json::array();
  for (const auto& line : known) {
    profiles.push_back({{"profile", line.profile},
                        {"uid", line.uid ? Json(*line.uid) : Json(nullptr)},
                        {"job_name", line.name},
                        {"partition", line.partition},
                        {"runs", line.runs},
                        {"last_end_s", line.last_end_s}});
  }
  return dump(Json{{"profiles", profiles}});
}

std::string list_text(const std::vector<ProfileLine>& known) {
  if (known.empty()) {
    return "no profile is known yet: `sphase-collector learn` makes them of jobs that were "
           "merged\n";
  }
  Table table;
  table.column("profile", Table::Align::kLeft);
  table.column("runs", Table::Align::kRight);
  table.column("last ended", Table::Align::kLeft);
  table.column("partition", Table::Align::kLeft);
  table.column("job name", Table::Align::kLeft);
  for (const auto& line : known) {
    table.row({clean(line.profile), std::to_string(line.runs), format_time(line.last_end_s),
               line.partition.empty() ? "-" : clean(line.partition),
               line.name.empty() ? "-" : clean(line.name)});
  }
  return table.print();
}

int list(const Arguments& arguments) {
  return with_profiles(arguments,
                       [&](Database&, const std::string&, const std::vector<ProfileLine>& known) {
                         return print_out(arguments.json ? list_json(known) : list_text(known));
                       });
}

int show(const Arguments& arguments) {
  return with_profiles(
      arguments, [&](Database& db, const std::string&, const std::vector<ProfileLine>& known) {
        const auto key = choose_profile(known, arguments.profile, ::getuid());
        if (!key) return fail_with(key.error(), 1);
        const auto runs = load_observed(db, *key);
        if (!runs) return fail_with(runs.error(), 1);
        if (arguments.json) {
          return print_out(dump(Json{{"profile", *key}, {"runs", observed_json(*runs)}}));
        }
        const std::size_t most = arguments.all ? runs->size() : 20;
        return print_out("Profile " + clean(*key) + "\n\n" + observed_text(*runs, most));
      });
}

int forget(const Arguments& arguments) {
  return with_profiles(
      arguments, [&](Database&, const std::string& path, const std::vector<ProfileLine>& known) {
        const auto key = choose_profile(known, arguments.profile, ::getuid());
        if (!key) return fail_with(key.error(), 1);
        auto db = open_cluster(path);
        if (!db) return fail_with(db.error(), 1);
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        const auto done = forget_profile(
            *db, *key, std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
        if (!done) return fail_with("cannot forget " + *key + ": " + done.error(), 1);
        if (arguments.json) return print_out(dump(Json{{"forgotten", *key}}));
        return print_out(clean(*key) +
                         " is forgotten: its runs until now are not learned from any more.\n"
                         "Its advice ends with the next `sphase-collector learn`.\n");
      });
}

CLI::App* add(CLI::App& parent, const char* name, const char* what, Arguments& arguments) {
  auto* command = parent.add_subcommand(name, what);
  command
      ->add_option("--db", arguments.db,
                   "cluster.db (default: $SPHASE_DB, or ClusterDatabase of sphase.conf)")
      ->type_name("FILE");
  command->add_flag("--json", arguments.json, "for programs");
  return command;
}

void add_name(CLI::App* command, Arguments& arguments) {
  command
      ->add_option("profile", arguments.profile,
                   "a profile of yours (NAME, or ~HASH by its first digits), or a key UID/NAME")
      ->required()
      ->type_name("PROFILE");
}

}  // namespace

void add_profile(CLI::App& app, int& code) {
  auto arguments = std::make_shared<Arguments>();
  auto* profile = app.add_subcommand("profile", "jobs that are learned from as one");
  profile->require_subcommand(1);
  profile->footer("Example:\n  sphase profile list");

  auto* listing = add(*profile, "list", "every profile, last seen first", *arguments);
  listing->footer("Example:\n  sphase profile list --json");
  listing->callback([arguments, &code] { code = list(*arguments); });

  auto* showing = add(*profile, "show", "the runs of a profile that are learned from", *arguments);
  add_name(showing, *arguments);
  showing->add_flag("--all", arguments->all, "every run (20 otherwise; --json: always)");
  showing->footer("Example:\n  sphase profile show solver");
  showing->callback([arguments, &code] { code = show(*arguments); });

  auto* forgetting =
      add(*profile, "forget", "learn anew, from runs that end from now on", *arguments);
  add_name(forgetting, *arguments);
  forgetting->footer("Example:\n  sphase profile forget solver");
  forgetting->callback([arguments, &code] { code = forget(*arguments); });
}

}  // namespace sphase
