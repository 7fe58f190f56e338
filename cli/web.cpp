#include "cli/web.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "collector/http/url.h"
#include "collector/report/format.h"
#include "collector/site.h"
#include "collector/wire/credential.h"

namespace sphase {
namespace {

struct WebArguments {
  std::string url, conf;
  std::uint16_t port = kHttpPort;
};

int fail(const std::string& why, int code) {
  std::fputs(("sphase: " + clean(why) + '\n').c_str(), stderr);
  return code;
}

int web(const WebArguments& arguments) {
  const auto site = load_site(arguments.conf);
  if (!site) return fail(site.error(), 2);
  const std::string host = site->config.collector_host;
  if (arguments.url.empty() && host.empty()) {
    return fail(site->path + " names no Collector=HOST: --url http://HOST:PORT says where it is",
                2);
  }
  const std::string url = arguments.url.empty() ? url_of(host, arguments.port) : arguments.url;
  if (!url.starts_with("http://") && !url.starts_with("https://")) {
    return fail("--url " + url + ": right is http://HOST:PORT", 2);
  }
  const auto credential = make_credential({site->config.munge_socket}, kLoginPayload);
  if (!credential) return fail(credential.error(), 1);
  std::fputs((login_link(url, *credential) + '\n').c_str(), stdout);
  return std::fflush(stdout) == 0 ? 0 : fail("cannot write the link", 1);
}

}  // namespace

void add_web(CLI::App& app, int& code) {
  auto arguments = std::make_shared<WebArguments>();
  auto* command = app.add_subcommand(
      "web", "a link that shows your jobs in a browser, live: good once, and for a minute");
  auto* url = command
                  ->add_option("--url", arguments->url,
                               "of the collector's web page (default: http://HOST:PORT with the "
                               "host of Collector= in sphase.conf)")
                  ->type_name("URL");
  command
      ->add_option("--port", arguments->port,
                   fmt::format("of `sphase-collector serve --http` (default: {})", kHttpPort))
      ->check(CLI::Range(1, 65535))
      ->type_name("PORT")
      ->excludes(url);
  command
      ->add_option("--conf", arguments->conf,
                   "sphase.conf (default: $SPHASE_CONF, or beside slurm.conf)")
      ->type_name("FILE");
  command->footer(
      "Example:\n  sphase web                                # open what it prints\n"
      "  ssh -L 6826:localhost:6826 COLLECTOR      # where it serves its own host alone:\n"
      "  sphase web --url http://localhost:6826    # then on the cluster");
  command->callback([arguments, &code] { code = web(*arguments); });
}

}  // namespace sphase
