#include "cli/ask.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "collector/cluster_db.h"
#include "collector/report/format.h"
#include "collector/ship/asker.h"
#include "collector/site.h"

namespace sphase {
namespace {

/// Whoever can read the file can read all of it.
Reply reply_of_file(const std::string& path, const Question& question, const Write& write) {
  auto db = read_cluster(path);
  if (!db) return {1, db.error()};
  return answer(*db, Viewer{0, true}, question, write);
}

Reply reply_of_collector(const SiteConfig& config, const Question& question, const Write& write) {
  CollectorPlace place{config.collector_host,
                       static_cast<std::uint16_t>(config.collector_port),
                       {config.munge_socket},
                       {}};
  auto uids = trusted_uids(config);
  if (!uids) return {2, uids.error()};
  place.uids = std::move(*uids);
  auto reply = ask_collector(place, question);
  if (reply && reply->code == 0) write(std::exchange(reply->text, {}));
  if (reply) return std::move(*reply);
  return {1, reply.error() + " (--db FILE reads a file instead)"};
}

}  // namespace

void add_places(CLI::App& command, Asked& asked) {
  command
      .add_option("--db", asked.db,
                  "read this cluster.db (default: $SPHASE_DB, else ask the collector that "
                  "sphase.conf names, else " +
                      default_cluster_path() + ")")
      ->type_name("FILE");
  command
      .add_option("--conf", asked.conf, "sphase.conf (default: $SPHASE_CONF, or beside slurm.conf)")
      ->type_name("FILE");
}

Reply reply_to(const Asked& asked, const Write& write) {
  const char* const named = std::getenv("SPHASE_DB");
  if (!asked.db.empty()) return reply_of_file(asked.db, asked.question, write);
  if (named != nullptr && *named != '\0') return reply_of_file(named, asked.question, write);
  const auto site = load_site(asked.conf);
  if (!site) return {2, site.error()};
  if (site->config.collector_host[0] != '\0') {
    return reply_of_collector(site->config, asked.question, write);
  }
  return reply_of_file(default_cluster_path(), asked.question, write);
}

int tell_problem(const Reply& reply) {
  std::fputs(("sphase: " + clean(reply.text) + '\n').c_str(), stderr);
  return reply.code;
}

int ask(const Asked& asked) {
  bool written = true;
  const Reply reply = reply_to(asked, [&](std::string_view part) {
    written = std::fwrite(part.data(), 1, part.size(), stdout) == part.size();
    return written;
  });
  if (reply.code != 0) return tell_problem(reply);
  return written && std::fflush(stdout) == 0 ? 0 : tell_problem({1, "cannot write the answer"});
}

}  // namespace sphase
