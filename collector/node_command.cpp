#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "collector/file_lock.h"
#include "collector/serve_command.h"
#include "collector/ship/shipper.h"
#include "collector/site.h"
#include "collector/stop_signals.h"

namespace sphase {
namespace {

struct Arguments {
  std::string node_db, conf, collector, run_dir = "/run/sphase", node;
  bool advice = false;
};

/// What NodeName is where slurm.conf does not say otherwise (slurm.conf(5), NodeHostname).
std::string short_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  const std::string whole = name.data();
  return whole.substr(0, whole.find('.'));
}

Result<ShipOptions> options_of(const Arguments& arguments, SiteConfig config) {
  if (!arguments.collector.empty()) {
    const std::string line = "Collector=" + arguments.collector + "\n";
    std::array<char, 512> why{};
    SiteConfig only;
    if (arguments.collector.find_first_of(" \t\r\n#") != std::string::npos ||
        !parse_site_config(line, only, why.data(), why.size())) {
      return Error{"--collector " + arguments.collector +
                   ": right are HOST, HOST:PORT and [ADDRESS]:PORT"};
    }
    std::copy(std::begin(only.collector_host), std::end(only.collector_host),
              std::begin(config.collector_host));
    config.collector_port = only.collector_port;
  }
  if (config.collector_host[0] == '\0') {
    return Error{"no collector is named: Collector=HOST in sphase.conf, or --collector HOST"};
  }
  ShipOptions options;
  options.node_db = arguments.node_db.empty() ? config.node_db : arguments.node_db;
  const std::string node = arguments.node.empty() ? short_host() : arguments.node;
  for (auto at = options.node_db.find("%n"); at != std::string::npos;
       at = options.node_db.find("%n", at + node.size())) {
    options.node_db.replace(at, 2, node);
  }
  options.notes = arguments.run_dir + "/notes";
  options.host = config.collector_host;
  options.port = static_cast<std::uint16_t>(config.collector_port);
  options.munge.socket = config.munge_socket;
  auto uids = trusted_uids(config);
  if (!uids) return Error{uids.error()};
  options.collector_uids = std::move(*uids);
  if (arguments.advice) options.advice_table = config.advice_table;
  return options;
}

/// As the first recorder would: we may be there before it.
void make_folder(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  ::mkdir(folder.parent_path().c_str(), 0711);
  ::mkdir(folder.c_str(), 0700);
}

int ship(const Arguments& arguments) {
  auto site = load_site(arguments.conf);
  auto options = site ? options_of(arguments, site->config) : Error{site.error()};
  if (!options) {
    tell(options.error());
    return 2;
  }
  StopSignals stop;
  make_folder(options->node_db);
  auto lock = FileLock::take(options->node_db + ".ship");
  if (!lock) {
    tell(lock.error() + ": one shipper per node.db");
    return 1;
  }
  tell(fmt::format("from {} to {} port {}", options->node_db, options->host, options->port));
  Shipper(
      *options, [&stop] { return stop.came(); }, tell)
      .run();
  tell("told to stop");
  return 0;
}

}  // namespace

void add_node(CLI::App& app, int& code) {
  auto arguments = std::make_shared<Arguments>();
  auto* command = app.add_subcommand(
      "node", "ship what was recorded on this node to the collector: a daemon on each node");
  command
      ->add_option("--node-db", arguments->node_db,
                   "what the recorders write (default: NodeDatabase of sphase.conf)")
      ->type_name("FILE");
  command
      ->add_option("--node", arguments->node,
                   "NodeName, %n in NodeDatabase (default: the host's short name)")
      ->type_name("NAME");
  command
      ->add_option("--run-dir", arguments->run_dir,
                   "where the plugin leaves notes when it cannot record; run_dir= of "
                   "plugstack.conf (default: /run/sphase)")
      ->type_name("DIR");
  command
      ->add_option("--collector", arguments->collector,
                   "HOST or HOST:PORT (default: Collector of sphase.conf)")
      ->type_name("HOST");
  command
      ->add_option("--conf", arguments->conf,
                   "sphase.conf (default: $SPHASE_CONF, or beside slurm.conf)")
      ->type_name("FILE");
  command->add_flag("--advice", arguments->advice,
                    "also fetch the advice table: on the hosts of slurmctld");
  command->footer(
      "Example:\n  sphase-collector node --collector head:6825\n"
      "SIGTERM ends it; it may be killed at any time. A line is logged when something changes.");
  command->callback([arguments, &code] { code = ship(*arguments); });
}

}  // namespace sphase
