// What is answered to a request, before it is put into HTTP.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sphase {

struct HttpAnswer {
  unsigned status = 200;
  std::string type;  // Content-Type
  std::string body;
  std::string policy;                                       // Content-Security-Policy
  std::vector<std::pair<std::string, std::string>> fields;  // further ones
};

HttpAnswer json_answer(std::string body);

/// A page of one sentence, without style and scripts. `text` is ours, never a user's.
HttpAnswer page_answer(unsigned status, std::string_view title, std::string_view text);

/// {"error": text}
HttpAnswer error_answer(unsigned status, std::string_view text);

/// The list of jobs, which asks /api/jobs for its rows.
HttpAnswer jobs_page_answer();

/// The page of a job around `data` of page_data.
HttpAnswer job_page_answer(std::string_view data);

}  // namespace sphase
