#include "collector/serve_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>

#include "collector/file_lock.h"
#include "collector/http/http_server.h"
#include "collector/serve/server.h"
#include "collector/site.h"
#include "collector/stop_signals.h"
#include "collector/watch.h"
#include "collector/watch_round.h"

namespace sphase {
namespace {

struct Arguments {
  std::string db, conf, address, http;
  int port = -1;
  std::int64_t records_interval_s = 60;
  bool no_records = false, all_jobs = false;
};

/// The scheduler's records, and learning, once in a while, beside the serving.
class Housekeeping {
 public:
  Housekeeping(const Arguments& arguments, Site site, std::string db)
      : arguments_(arguments),
        site_(std::move(site)),
        db_(std::move(db)),
        watcher_({{}, arguments.records_interval_s, arguments.all_jobs},
                 arguments.no_records ? nullptr : slurm_records(), [this] { return over_.load(); }),
        thread_([this] { run(); }) {}
  Housekeeping(const Housekeeping&) = delete;
  Housekeeping& operator=(const Housekeeping&) = delete;
  ~Housekeeping() {
    over_ = true;
    thread_.join();
  }

 private:
  void run() {
    ProblemLog log;
    Backoff backoff(site_.config.watch_interval_s);
    while (!over_) {
      std::vector<std::string> problems;
      reload(arguments_.conf, site_, problems);
      const Round round = watcher_.round(site_, db_);
      problems.insert(problems.end(), round.problems.begin(), round.problems.end());
      for (const auto& line : log.lines_for(problems)) tell(line);
      wait(backoff.after(round.failed));
    }
  }
  void wait(std::int64_t seconds) {
    const std::int64_t until_ns = monotonic_ns() + seconds * 1'000'000'000;
    const timespec nap{0, 100'000'000};
    while (!over_ && monotonic_ns() < until_ns) ::nanosleep(&nap, nullptr);
  }

  const Arguments& arguments_;
  Site site_;
  std::string db_;
  std::atomic<bool> over_ = false;
  Watcher watcher_;
  std::thread thread_;
};

Result<ServeOptions> options_of(const Arguments& arguments, const Site& site,
                                const std::string& db) {
  ServeOptions options;
  options.database = db;
  options.address = arguments.address.empty() ? site.config.collector_address : arguments.address;
  options.port = static_cast<std::uint16_t>(
      arguments.port < 0 ? static_cast<int>(site.config.collector_port) : arguments.port);
  auto uids = trusted_uids(site.config);
  if (!uids) return Error{site.path + ": " + uids.error()};
  options.uids = std::move(*uids);
  options.munge.socket = site.config.munge_socket;
  options.advice_table = site.config.advice_table;
  return options;
}

/// The host of Collector=, and what this host calls itself.
std::vector<std::string> names_of_host(const SiteConfig& config) {
  std::array<char, 256> own{};
  ::gethostname(own.data(), own.size() - 1);
  std::vector<std::string> names;
  for (const std::string_view name :
       {std::string_view(config.collector_host), std::string_view(own.data())}) {
    if (!name.empty()) names.push_back(host_of(name));
  }
  return names;
}

/// nullptr: not asked for.
Result<std::unique_ptr<HttpServer>> start_http(const std::optional<ListenPlace>& place,
                                               const ServeOptions& serving,
                                               const SiteConfig& config) {
  if (!place) return std::unique_ptr<HttpServer>();
  const auto caller_of = [munge = serving.munge](const std::string& credential) {
    return read_credential(munge, credential);
  };
  auto server = HttpServer::start(
      *place, {serving.database, serving.uids, names_of_host(config), caller_of, tell});
  if (server) {
    tell(fmt::format("web page at {}", url_of(place->address, (*server)->port())));
  }
  return server;
}

/// nullopt: no web page.
Result<std::optional<ListenPlace>> http_place(const std::string& given) {
  if (given.empty()) return std::optional<ListenPlace>();
  auto place = parse_listen(given);
  if (!place) return Error{place.error()};
  return std::optional(*place);
}

int serve(const Arguments& arguments) {
  const auto place = http_place(arguments.http);
  if (!place) {
    tell(place.error());
    return 2;
  }
  auto site = load_site(arguments.conf);
  if (!site) {
    tell(site.error());
    return 2;
  }
  const std::string db = chosen_db(arguments.db, site->config);
  auto options = options_of(arguments, *site, db);
  if (!options) {
    tell(options.error());
    return 2;
  }
  StopSignals stop;  // before there is a thread
  auto lock = FileLock::take(db + ".watch");
  if (!lock) {
    tell(lock.error() + ": one watch or serve per database");
    return 1;
  }
  auto server = Server::start(*options, tell);
  if (!server) {
    tell(server.error());
    return 1;
  }
  tell(fmt::format("serving at {} port {}, into {}", options->address, (*server)->port(), db));
  auto http = start_http(*place, *options, site->config);
  if (!http) {
    tell(http.error());
    return 1;
  }
  std::thread serving([&] { (*server)->run(); });
  {
    const Housekeeping housekeeping(arguments, std::move(*site), db);
    while (!stop.wait(3600)) {
    }
    (*server)->stop();
  }
  serving.join();
  tell("told to stop");
  return 0;
}

}  // namespace

void add_serve(CLI::App& app, int& code) {
  auto arguments = std::make_shared<Arguments>();
  auto* command = app.add_subcommand(
      "serve", "take what the nodes ship, ask Slurm about the jobs, and learn: the central daemon");
  command
      ->add_option("--db", arguments->db,
                   "cluster.db; made where absent (default: $SPHASE_DB, or ClusterDatabase of "
                   "sphase.conf)")
      ->type_name("FILE");
  command
      ->add_option("--conf", arguments->conf,
                   "sphase.conf (default: $SPHASE_CONF, or beside slurm.conf)")
      ->type_name("FILE");
  command
      ->add_option("--address", arguments->address,
                   "to listen at (default: CollectorAddress of sphase.conf)")
      ->type_name("ADDRESS");
  command
      ->add_option("--port", arguments->port,
                   "to listen at; 0: any free one, which is told (default: that of Collector)")
      ->check(CLI::Range(0, 65535))
      ->type_name("PORT");
  command
      ->add_option("--records-interval", arguments->records_interval_s,
                   "shortest time between two questions to slurmctld, and to slurmdbd, in seconds "
                   "(default: 60); doubles up to 15 min while one is away")
      ->check(CLI::Range(1, 86400))
      ->type_name("SECONDS");
  command->add_flag("--all-jobs", arguments->all_jobs,
                    "keep the records of every job that slurmctld holds, not only of those with "
                    "telemetry and their helpers");
  command->add_flag("--no-records", arguments->no_records, "do not ask slurmctld and slurmdbd");
  command
      ->add_option("--http", arguments->http,
                   "where users see their jobs in a browser, live (`sphase web`); a port alone is "
                   "at 127.0.0.1 (default: nowhere)")
      ->type_name("[ADDRESS:]PORT");
  command->footer(
      "Example:\n  sphase-collector serve --conf /etc/slurm/sphase.conf\n"
      "  sphase-collector serve --http 127.0.0.1:6826\n"
      "SIGTERM ends it. A line is logged when something changes. Nodes run `sphase-collector "
      "node`.");
  command->callback([arguments, &code] { code = serve(*arguments); });
}

}  // namespace sphase
