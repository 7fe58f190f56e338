#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "collector/page/flag_words.h"
#include "collector/report/format.h"
#include "collector/report/report_print.h"
#include "collector/report/table.h"
#include "collector/report/why_print.h"
#include "collector/timeline/node_names.h"

namespace sphase {
namespace {

using Align = Table::Align;
constexpr std::size_t kListedNodes = 16;
constexpr std::int64_t kSecond = 1'000'000'000;

std::string seconds(double value) { return format_number(value); }
std::string count_of(std::int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}
std::string whole(std::int64_t value) { return std::to_string(value); }

std::string line(const char* title, const std::string& text) {
  return wrap(fmt::format("{:<11}{}", title, text), 11) + '\n';
}

std::string title_of(const Timeline& timeline) {
  const JobFacts& job = timeline.job;
  std::string text = "Job " + job_label(job);
  if (job.name) text += " \"" + clean(*job.name) + '"';
  if (job.user) {
    text += " of " + clean(*job.user);
  } else if (job.uid) {
    text += " of uid " + whole(*job.uid);
  }
  if (job.account && !job.account->empty()) text += ", account " + clean(*job.account);
  if (job.partition) text += ", partition " + clean(*job.partition);
  if (!job.cluster.empty()) text += ", cluster " + clean(job.cluster);
  if (timeline.starts > 1 || job.restart_count > 0) {
    text += fmt::format(", start {}", job.restart_count + 1);
    if (job.restart_count > 0) text += " (requeued)";
  }
  return wrap(text, 4) + '\n';
}

std::string times_of(const Timeline& timeline) {
  const JobFacts& job = timeline.job;
  std::string text;
  if (job.state) text = state_label(job) + "; ";
  if (job.submit_s) text += "submitted " + format_time(*job.submit_s) + ", ";
  if (timeline.begin_ns == 0 && !job.start_s) return text + "not started";
  text += (job.start_s ? "started " : "first seen ") + format_time(timeline.begin_ns / kSecond);
  if (job.submit_s && job.start_s) {
    const std::int64_t waited = *job.start_s - *job.submit_s;
    text += waited == 0 ? " (at once)" : " (waited " + format_duration(waited * kSecond) + ")";
  }
  if (job.suspended_s && *job.suspended_s > 0) {
    text += ", suspended for " + format_duration(*job.suspended_s * kSecond);
  }
  const std::string took = format_duration(timeline.end_ns - timeline.begin_ns);
  if (timeline.running) return text + ", running for " + took + " when last heard of";
  return text + fmt::format(", {} {} ({})", job.end_s ? "ended" : "last seen",
                            format_time(timeline.end_ns / kSecond), took);
}

std::string requested_of(const JobFacts& job) {
  std::string text;
  auto part = [&](const std::string& words) { text += (text.empty() ? "" : ", ") + words; };
  if (job.requested_nodes) part(count_of(*job.requested_nodes, "node"));
  if (job.requested_cpus) part(count_of(*job.requested_cpus, "CPU"));
  if (job.requested_memory) part("memory " + clean(*job.requested_memory));
  if (job.time_limit_s) part("time limit " + format_duration(*job.time_limit_s * kSecond));
  if (text.empty()) text = "-";
  return text;
}

std::string allocated_of(const Timeline& timeline, const Allocation& allocation) {
  std::vector<std::string> names;
  for (const auto& node : allocation.nodes) names.push_back(node.node);
  std::string text = names.empty() ? or_dash(allocation.expression) : clean(compress_nodes(names));
  const auto count = allocation.node_count.value_or(static_cast<std::int64_t>(names.size()));
  text += " (" + count_of(count, "node") + ")";
  if (allocation.cpus) text += ", " + count_of(*allocation.cpus, "CPU");
  if (allocation.memory_bytes) text += ", " + format_bytes(*allocation.memory_bytes);
  if (timeline.allocations.size() > 1) {
    text += fmt::format(", {} to {}", format_time(allocation.begin_ns / kSecond),
                        allocation.end_ns ? format_time(*allocation.end_ns / kSecond) : "now");
    if (allocation.state == "RESIZING") text += ", then resized";
  }
  if (allocation.deduced) text += ", as seen by the runs";
  return text;
}

/// "events papi-hw", "no events (this node has no hardware counters …)".
std::string events_tier(const Run& run) {
  if (!run.counter_source) return "events not recorded";
  std::string text = *run.counter_source == "none" ? "no events" : "events " + *run.counter_source;
  if (run.counter_reason) text += " (" + *run.counter_reason + ")";
  return text;
}

/// Which counters were used, and on how many nodes where they differ.
std::string counters_of(const Timeline& timeline) {
  std::map<std::string, int> tiers;
  for (const auto& run : timeline.runs) {
    ++tiers[fmt::format("CPU from {}, memory from {}, I/O from {}, {}",
                        run.cpu_source.value_or("nothing"), run.memory_source.value_or("nothing"),
                        run.io_source.value_or("nothing"), events_tier(run))];
  }
  std::string text;
  for (const auto& [tier, count] : tiers) {
    text += (text.empty() ? "" : "; ") + clean(tier);
    if (tiers.size() > 1) text += fmt::format(" ({} runs)", count);
  }
  return text;
}

std::string head(const Timeline& timeline) {
  std::string out = title_of(timeline);
  out += line("", times_of(timeline));
  if (timeline.job.source) out += line("requested", requested_of(timeline.job));
  const std::string submission = submission_line(timeline.job);
  if (!submission.empty()) out += line("submission", submission);
  const char* title = "allocated";
  for (const auto& allocation : timeline.allocations) {
    out += line(title, allocated_of(timeline, allocation));
    title = "";
  }
  const std::string counters = counters_of(timeline);
  if (!counters.empty()) out += line("counters", counters);
  return out;
}

/// Flags that (nearly) every row has are said once, below the table.
std::uint32_t common_flags(const std::vector<UsageRow>& rows) {
  std::uint32_t common = kNoMemory | kNoCpu;
  for (const auto& row : rows) {
    if (!(row.flags & kScript)) common &= row.flags;
  }
  return rows.size() > 2 ? common : 0;
}

std::string phase_table(const std::vector<UsageRow>& rows, std::uint32_t common) {
  Table table;
  table.column("phase", Align::kLeft);
  for (const char* title :
       {"n", "time", "CPUs", "busy", "eff", "memory", "read", "written", "wasted", "imb"}) {
    table.column(title, Align::kRight);
  }
  table.column("", Align::kLeft);
  for (const auto& row : rows) {
    table.row({phase_name(row), whole(row.instances), format_duration(row.time_ns),
               or_dash(row.cpus_allocated(), format_number),
               or_dash(row.cpus_busy(), format_number), or_dash(row.efficiency(), format_percent),
               or_dash(row.memory_peak_bytes, format_bytes),
               or_dash(row.io.read_call_bytes, format_bytes),
               or_dash(row.io.write_call_bytes, format_bytes), or_dash(row.wasted_node_s, seconds),
               row.imbalance_cpu ? fmt::format("{:.2f}", *row.imbalance_cpu) : "",
               words_of(row.flags & ~common)});
  }
  return table.print();
}

std::string legend(const std::vector<UsageRow>& rows, std::uint32_t common) {
  std::string out =
      wrap(
          "n instances · time with at least one open · CPUs allocated · busy CPUs used on average ·"
          " eff busy/CPUs · memory most on one node, without page cache · read, written by calls"
          " (cache and network file systems too) · wasted node-seconds · imb CPU time of the"
          " busiest task / mean of the tasks",
          2) +
      '\n';
  std::uint32_t seen = 0;
  for (const auto& row : rows) {
    const bool implied = (row.flags & (kCrossed | kFolded)) != 0;
    seen |= implied ? row.flags & ~std::uint32_t{kInterpolated} : row.flags;
  }
  for (const auto& flag : flag_words()) {
    if ((seen & flag.bit) == 0) continue;
    out += (common & flag.bit) ? wrap(fmt::format("all rows: {}", flag.meaning), 2) + '\n'
                               : wrap(fmt::format("{}: {}", flag.word, flag.meaning), 2) + '\n';
  }
  return out;
}

/// "solve/io, step 0"
std::string full_name(const UsageRow& row) {
  if (row.path.empty()) return clean(row.name);
  const bool script = row.step == "batch" || row.step == "interactive";
  const std::string step = row.step.empty() ? "" : script ? ", " + row.step : ", step " + row.step;
  return clean(row.path) + clean(step);
}

/// Shortest, mean and longest instance of what ran more than once.
std::string spread_table(const std::vector<UsageRow>& rows) {
  Table table;
  table.column("more than once", Align::kLeft);
  for (const char* title : {"n", "shortest", "mean", "longest"}) table.column(title, Align::kRight);
  table.column("", Align::kLeft);
  for (const auto& row : rows) {
    if (row.instances < 2 || row.kind == UsageRow::Kind::kOutside) continue;
    table.row({full_name(row), whole(row.instances), or_dash(row.shortest_ns, format_duration),
               format_duration(row.duration_ns / row.instances),
               or_dash(row.longest_ns, format_duration)});
  }
  return table.empty() ? "" : '\n' + table.print();
}

std::string node_remark(const NodeUse& node) {
  if (node.idle) return "idle";
  if (node.silent) return "no telemetry";
  return words_of(node.flags & ~kIoInterpolated);
}

std::string node_table(const Timeline& timeline, bool every) {
  Table table;
  table.column("node", Align::kLeft);
  for (const char* title :
       {"time", "CPUs", "busy", "eff", "memory", "of", "read", "written", "wasted"}) {
    table.column(title, Align::kRight);
  }
  table.column("", Align::kLeft);
  const bool all = every || timeline.nodes.size() <= kListedNodes;
  std::size_t left_out = 0;
  for (const auto& node : timeline.nodes) {
    if (!all && !node.idle && !node.silent) {
      ++left_out;
      continue;
    }
    const auto time_ns = static_cast<std::int64_t>(node.time_s * 1e9);
    std::optional<double> busy, share;
    if (node.cpu_time_ns && time_ns > 0) busy = static_cast<double>(*node.cpu_time_ns) / time_ns;
    if (busy && node.cpu_allocated_ns && *node.cpu_allocated_ns > 0) {
      share = static_cast<double>(*node.cpu_time_ns) / *node.cpu_allocated_ns;
    }
    table.row({clean(node.node), format_duration(time_ns), or_dash(node.cpus, whole),
               or_dash(busy, format_number), or_dash(share, format_percent),
               or_dash(node.memory_peak_bytes, format_bytes),
               or_dash(node.memory_allocated_bytes, format_bytes),
               or_dash(node.io.read_call_bytes, format_bytes),
               or_dash(node.io.write_call_bytes, format_bytes),
               or_dash(node.wasted_node_s, seconds), node_remark(node)});
  }
  std::string out = table.empty() ? "" : '\n' + table.print();
  if (std::any_of(timeline.nodes.begin(), timeline.nodes.end(),
                  [](const NodeUse& node) { return node.idle; })) {
    out += "\nidle: allocated, but no process of the job was seen there\n";
  }
  if (left_out > 0) {
    out += fmt::format("\n{} of {} nodes worked and are not listed: --nodes lists them\n", left_out,
                       timeline.nodes.size());
  }
  return out;
}

/// What the application said about itself, e.g. its problem size.
std::string attribute_list(const Timeline& timeline) {
  constexpr std::size_t kListed = 12;
  std::map<std::string, std::string> attributes;
  for (const auto& run : timeline.runs) {
    for (const auto& [key, value] : run.attributes) attributes.emplace(clean(key), clean(value));
  }
  if (attributes.empty()) return "";
  std::string out = "\nAttributes\n";
  std::size_t listed = 0;
  for (const auto& [key, value] : attributes) {
    if (listed++ == kListed) {
      return out + fmt::format("  … and {} more (--json)\n", attributes.size() - kListed);
    }
    out += wrap(fmt::format("  {} = {}", key, value), 4) + '\n';
  }
  return out;
}

std::string missing_list(const Timeline& timeline) {
  if (timeline.missing.empty()) return "";
  std::string out = "\nNot known, and why\n";
  for (const auto& sentence : timeline.missing) out += wrap("  - " + clean(sentence), 4) + '\n';
  return out;
}

/// The one number that matters, in words.
std::string verdict(const Timeline& timeline) {
  const UsageRow& job = timeline.rows.front();
  if (job.kind != UsageRow::Kind::kJob || !job.wasted_node_s || !job.allocated_node_s ||
      *job.allocated_node_s <= 0) {
    return "";
  }
  double unknown_s = 0;
  for (const auto& node : timeline.nodes) {
    if (node.silent || !node.wasted_node_s) {
      unknown_s += node.time_s;
    } else {
      unknown_s += node.unknown_s;
    }
  }
  std::string text =
      fmt::format("{} of {} allocated node-seconds were not used ({})",
                  format_number(*job.wasted_node_s), format_number(*job.allocated_node_s),
                  format_percent(*job.wasted_node_s / *job.allocated_node_s));
  if (unknown_s >= 0.005) text += fmt::format("; of {} nothing is known", format_number(unknown_s));
  return text + ".\n";
}

}  // namespace

std::string phase_name(const UsageRow& row) {
  std::string name = std::string(static_cast<std::size_t>(row.level) * 2, ' ') + clean(row.name);
  const bool phase =
      row.kind == UsageRow::Kind::kTaskPhase || row.kind == UsageRow::Kind::kJobPhase;
  if (phase && row.number > 1) name += fmt::format(" #{}", row.number);
  return name;
}

std::string job_label(const JobFacts& job) {
  if (job.array_job_id && job.array_task_id) {
    return fmt::format("{}_{} ({})", *job.array_job_id, *job.array_task_id, job.job_id);
  }
  if (job.het_job_id && job.het_offset) {
    return fmt::format("{}+{} ({})", *job.het_job_id, *job.het_offset, job.job_id);
  }
  return std::to_string(job.job_id);
}

std::string state_label(const JobFacts& job) {
  std::string text = clean(job.state.value_or("-"));
  const std::int64_t code = job.exit_code.value_or(0);
  // As wait(2) has it: killed by a signal, or ended with a code.
  if (code & 0x7F) {
    text += fmt::format(", signal {}", code & 0x7F);
  } else if (code >> 8 & 0xFF) {
    text += fmt::format(", exit code {}", code >> 8 & 0xFF);
  }
  if (job.state_reason && *job.state_reason != "None" && !job.state_reason->empty()) {
    text += " (" + clean(*job.state_reason) + ")";
  }
  return text;
}

std::string report_text(const std::vector<Timeline>& starts, const ReportOptions& options) {
  std::string out;
  for (const auto& timeline : starts) {
    if (!out.empty()) out += '\n' + std::string(Table::kWidth, '-') + "\n\n";
    out += head(timeline);
    const auto& rows = options.instances ? timeline.detail : timeline.rows;
    if (!timeline.runs.empty()) {
      const std::uint32_t common = common_flags(rows);
      out +=
          '\n' + verdict(timeline) + '\n' + phase_table(rows, common) + '\n' + legend(rows, common);
      out += event_table(rows);
      if (!options.instances) out += spread_table(rows);
    }
    out += node_table(timeline, options.nodes);
    out += attribute_list(timeline);
    out += missing_list(timeline);
  }
  return out;
}

}  // namespace sphase
