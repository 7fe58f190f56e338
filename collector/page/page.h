// `sphase report --html` and, live, the same page from a server: one self-contained file. The data
// and the page are apart, so that a server can send newer data to a page that is open.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "collector/timeline/timeline.h"

namespace sphase {

/// How much of a job goes into a page. All starts together share each of them.
struct PageLimits {
  std::size_t bytes = 9'800'000;       // of the data; where they are more, the other limits shrink
  std::size_t points = 300'000;        // of all charts
  std::size_t series_points = 16'000;  // of one line
  std::size_t bars = 40'000;
  std::size_t runs = 20'000;
  std::size_t rows = 4'000;      // of the phase table
  std::size_t texts = 500;       // notices, sentences and attributes, of each
  std::size_t text_bytes = 400;  // longer ones are cut
};

/// Everything that the page shows, as JSON: docs/page.md. ASCII alone, with `<`, `>` and `&` as
/// escapes, so that it can stand inside of HTML.
std::string page_data(const std::vector<Timeline>& starts, const PageLimits& limits = {});

enum class PageKind {
  kFile,  // opens from disk, asks nobody for anything
  kLive   // from a server: asks it for newer data at /api/job/ID/page while the job goes on
};

/// The page with `data` (of page_data) in it.
std::string page_html(std::string_view data, PageKind kind = PageKind::kFile);

/// Its Content-Security-Policy, which stands in the page, too.
std::string job_page_policy(PageKind kind);

}  // namespace sphase
