#include "collector/http/website.h"

#include <algorithm>
#include <charconv>

#include "collector/cluster_db.h"
#include "collector/http/job_search.h"
#include "collector/http/metrics.h"
#include "collector/page/page.h"
#include "collector/report/report_print.h"
#include "common/clock.h"

namespace sphase {
namespace {

constexpr std::string_view kCookie = "sphase";

HttpAnswer not_found() {
  return page_answer(404, "Not found", "There is no such page, or no such job of yours.");
}

HttpAnswer not_logged_in(bool as_json) {
  if (as_json) return error_answer(401, "no session: `sphase web` begins one");
  return page_answer(401, "sphase",
                     "Type <code>sphase web</code> on a host of the cluster and open the link that "
                     "it prints: it logs you in for eight hours.");
}

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : text) {
    if (c == '&') {
      html += "&amp;";
    } else if (c == '<') {
      html += "&lt;";
    } else {
      html += c;
    }
  }
  return html;
}

std::size_t limit_of(const Target& target) {
  const auto given = target.query.find("limit");
  if (given == target.query.end()) return kMostJobs;
  std::size_t limit = 0;
  const std::string& text = given->second;
  const auto [stop, failed] = std::from_chars(text.data(), text.data() + text.size(), limit);
  return failed != std::errc() || stop != text.data() + text.size() || limit == 0 ? kMostJobs
                                                                                  : limit;
}

bool is_path(const Target& target, std::string_view first, std::size_t parts) {
  return target.path.size() == parts && target.path.front() == first;
}

}  // namespace

HttpAnswer Website::answer(const HttpQuestion& question) {
  ++requests_;
  if (question.method != "GET" && question.method != "HEAD") {
    HttpAnswer refused = page_answer(405, "Not allowed", "Only GET and HEAD are.");
    refused.fields.emplace_back("Allow", "GET, HEAD");
    return refused;
  }
  if (!is_served(question.host)) {
    return page_answer(421, "Another host",
                       "This name is not served here: use an address, localhost, or the name in "
                       "<code>Collector=</code> of sphase.conf.");
  }
  const auto target = parse_target(question.target);
  if (!target) return page_answer(400, "Bad request", "The address cannot be read.");
  return route(question, *target);
}

HttpAnswer Website::route(const HttpQuestion& question, const Target& target) {
  if (is_path(target, "login", 1)) return login(question, target);
  const auto viewer = viewer_of_cookie(question.cookie);
  if (is_path(target, "metrics", 1)) return metrics(viewer, question.from_loopback);
  const bool as_json = !target.path.empty() && target.path.front() == "api";
  if (!viewer) return not_logged_in(as_json);
  return for_viewer(*viewer, target);
}

HttpAnswer Website::for_viewer(const Viewer& viewer, const Target& target) {
  const auto& path = target.path;
  if (path.empty()) return jobs_page_answer();
  if (is_path(target, "job", 2)) return job(viewer, target);
  if (is_path(target, "api", 2) && path[1] == "jobs") return list(viewer, target);
  const bool of_job = path.size() >= 3 && path[0] == "api" && path[1] == "job";
  if (of_job && (path.size() == 3 || (path.size() == 4 && path[3] == "page"))) {
    return job(viewer, target);
  }
  return path.front() == "api" ? error_answer(404, "not found") : not_found();
}

/// A credential is good for one login and a minute: munged remembers those it has seen.
HttpAnswer Website::login(const HttpQuestion& question, const Target& target) {
  const auto token = target.query.find("token");
  // HEAD would use the credential up.
  if (token == target.query.end() || question.method != "GET") return not_logged_in(false);
  const auto caller = options_.caller_of(token->second);
  if (!caller || caller->payload != kLoginPayload) {
    return page_answer(403, "sphase",
                       "This link is no longer good: each one logs in once, within a minute. "
                       "<code>sphase web</code> prints another.");
  }
  const auto id = sessions_.open(caller->uid, monotonic_ns());
  if (!id) return page_answer(503, "sphase", "No session can be made now.");
  HttpAnswer in = page_answer(303, "sphase", "<a href=\"/\">The jobs</a>");
  in.fields.emplace_back("Location", "/");
  in.fields.emplace_back("Set-Cookie", std::string(kCookie) + '=' + *id +
                                           "; HttpOnly; SameSite=Strict; Path=/; Max-Age=" +
                                           std::to_string(kSessionS));
  return in;
}

HttpAnswer Website::metrics(const std::optional<Viewer>& viewer, bool from_loopback) {
  if (!from_loopback && (!viewer || !viewer->is_operator)) return not_logged_in(false);
  auto db = database();
  auto found = db ? load_metrics(**db, options_.database, epoch_ns()) : Error{db.error()};
  if (!found) return no_database(found.error());
  found->sessions = static_cast<std::int64_t>(sessions_.count(monotonic_ns()));
  found->requests = requests_;
  HttpAnswer answer = json_answer(metrics_text(*found));
  answer.type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
  return answer;
}

HttpAnswer Website::list(const Viewer& viewer, const Target& target) {
  auto db = database();
  if (!db) return no_database(db.error());
  const auto words = target.query.find("q");
  const auto jobs =
      search_jobs(**db, viewer, words == target.query.end() ? "" : words->second, limit_of(target));
  if (!jobs) return no_database(jobs.error());
  return json_answer(jobs_json(*jobs, viewer));
}

/// /job/ID, /api/job/ID, /api/job/ID/page
HttpAnswer Website::job(const Viewer& viewer, const Target& target) {
  const bool as_json = target.path.front() == "api";
  auto db = database();
  if (!db) return no_database(db.error());
  const auto seen = seen_by(viewer, **db, target.path[as_json ? 2 : 1]);
  if (!seen) return no_database(seen.error());
  if (!*seen) return as_json ? error_answer(404, "not found") : not_found();
  const Seen& what = **seen;
  if (!what.problem.empty()) {
    return as_json ? error_answer(409, what.problem)
                   : page_answer(409, "Which one?", escaped(what.problem));
  }
  if (!as_json) return job_page_answer(page_data(what.starts));
  if (target.path.size() == 4) return json_answer(page_data(what.starts));
  return json_answer(report_json(what.starts, {}));
}

std::optional<Viewer> Website::viewer_of_cookie(std::string_view field) {
  const auto id = cookie_value(field, kCookie);
  if (!id) return std::nullopt;
  const auto uid = sessions_.uid_of(*id, monotonic_ns());
  if (!uid) return std::nullopt;
  return viewer_of(*uid, options_.operators);
}

/// A page from elsewhere whose name was made to lead here would be of the same origin as we are, to
/// its reader's browser. It cannot choose the names that we go by.
bool Website::is_served(std::string_view host_field) const {
  const std::string host = host_of(host_field);
  if (is_ip_address(host) || host == "localhost") return true;
  return std::find(options_.hosts.begin(), options_.hosts.end(), host) != options_.hosts.end();
}

Result<Database*> Website::database() {
  if (db_) return &*db_;
  auto db = read_cluster(options_.database);
  if (!db) return Error{db.error()};
  db_.emplace(std::move(*db));
  return &*db_;
}

/// The next question opens it again.
HttpAnswer Website::no_database(const std::string& why) {
  db_.reset();
  if (why != logged_) options_.log("http: " + why);
  logged_ = why;
  return page_answer(503, "sphase", "The collector cannot read its database now.");
}

}  // namespace sphase
