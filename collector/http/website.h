// Answers requests: who asks, for what, and whether they may have it. No sockets: those are in
// http_server.h. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/http/answer.h"
#include "collector/http/sessions.h"
#include "collector/http/url.h"
#include "collector/answer/viewer.h"
#include "collector/wire/credential.h"

namespace sphase {

struct WebsiteOptions {
  std::string database;                  // path of cluster.db
  std::vector<std::uint32_t> operators;  // who see the jobs of all; root is one anyway
  std::vector<std::string> hosts;        // names in a Host field, beside addresses and localhost
  /// Who made a credential, once: read_credential.
  std::function<Result<Caller>(const std::string&)> caller_of;
  std::function<void(const std::string&)> log;
};

struct HttpQuestion {
  std::string method, target;
  std::string host, cookie;  // fields, "": absent
  bool from_loopback = false;
};

class Website {
 public:
  explicit Website(WebsiteOptions options) : options_(std::move(options)) {}

  HttpAnswer answer(const HttpQuestion& question);

 private:
  HttpAnswer route(const HttpQuestion& question, const Target& target);
  HttpAnswer login(const HttpQuestion& question, const Target& target);
  HttpAnswer metrics(const std::optional<Viewer>& viewer, bool from_loopback);
  HttpAnswer for_viewer(const Viewer& viewer, const Target& target);
  HttpAnswer list(const Viewer& viewer, const Target& target);
  HttpAnswer job(const Viewer& viewer, const Target& target);
  std::optional<Viewer> viewer_of_cookie(std::string_view field);
  bool is_served(std::string_view host_field) const;
  Result<Database*> database();
  HttpAnswer no_database(const std::string& why);

  WebsiteOptions options_;
  Sessions sessions_;
  std::optional<Database> db_;
  std::int64_t requests_ = 0;
  std::string logged_;  // the last problem: said once
};

}  // namespace sphase
