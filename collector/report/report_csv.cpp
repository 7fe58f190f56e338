#include <fmt/format.h>

#include "collector/page/flag_words.h"
#include "collector/report/format.h"
#include "collector/report/report_print.h"

namespace sphase {
namespace {

/// A line of comma-separated fields; what is not known is an empty field.
class Line {
 public:
  Line& text(std::string_view value) {
    if (!first_) out_ += ',';
    first_ = false;
    out_ += csv_field(clean(value));
    return *this;
  }
  Line& number(std::int64_t value) { return text(std::to_string(value)); }
  Line& number(const Maybe& value) { return value ? number(*value) : text(""); }
  Line& number(const std::optional<double>& value) {
    return text(value ? fmt::format("{:.6g}", *value) : "");
  }
  std::string end() { return out_ + '\n'; }

 private:
  std::string out_;
  bool first_ = true;
};

void begin_line(Line& line, const JobFacts& job) {
  line.text(job.cluster).number(job.job_id).number(job.array_job_id).number(job.array_task_id);
  line.number(job.het_job_id).number(job.het_offset).number(job.restart_count);
}

constexpr const char* kJobColumns =
    "cluster,job_id,array_job_id,array_task_id,het_job_id,het_offset,restart_count,";

std::string row_line(const JobFacts& job, const UsageRow& row) {
  Line line;
  begin_line(line, job);
  line.text(word_of(row.kind)).number(row.level).text(row.name).text(row.path).text(row.step);
  line.number(row.number > 0 ? Maybe(row.number) : Maybe()).number(row.instances);
  line.number(row.begin_ns).number(row.end_ns).number(row.time_ns).number(row.shortest_ns);
  line.number(row.instances > 0 ? Maybe(row.duration_ns / row.instances) : Maybe());
  line.number(row.longest_ns);
  line.number(row.cpus_allocated()).number(row.cpu_time_ns).number(row.cpu_allocated_ns);
  line.number(row.efficiency()).number(row.memory_peak_bytes);
  line.number(row.io.read_bytes).number(row.io.write_bytes);
  line.number(row.io.read_call_bytes).number(row.io.write_call_bytes);
  line.number(row.allocated_node_s).number(row.wasted_node_s);
  line.number(row.imbalance_cpu).number(row.imbalance_wall);
  line.number(row.tasks).number(row.node_count).text(words_of(row.flags, " "));
  line.number(row.events.instructions()).number(row.events.instructions_per_cycle());
  line.number(row.events.misses_per_kilo_instruction()).number(row.events.gflops(row.time_ns));
  return line.end();
}

constexpr const char* kRowColumns =
    "kind,level,name,path,step,number,instances,begin_ns,end_ns,time_ns,shortest_ns,mean_ns,"
    "longest_ns,cpus_allocated,cpu_time_ns,cpu_allocated_ns,efficiency_ratio,memory_peak_bytes,"
    "io_read_bytes,io_write_bytes,io_read_call_bytes,io_write_call_bytes,allocated_node_s,"
    "wasted_node_s,imbalance_cpu_ratio,imbalance_wall_ratio,tasks,nodes,flags,"
    "instructions,instructions_per_cycle,misses_per_kilo_instruction,gflops\n";

std::string node_line(const JobFacts& job, const NodeUse& node) {
  Line line;
  begin_line(line, job);
  line.text(node.node).text(node.idle ? "idle" : node.silent ? "silent" : "used");
  line.number(std::optional(node.time_s)).number(node.cpus).number(node.cpu_time_ns);
  line.number(node.cpu_allocated_ns).number(node.memory_peak_bytes);
  line.number(node.memory_allocated_bytes).number(node.io.read_bytes).number(node.io.write_bytes);
  line.number(node.io.read_call_bytes).number(node.io.write_call_bytes);
  line.number(node.wasted_node_s).text(words_of(node.flags, " "));
  return line.end();
}

constexpr const char* kNodeColumns =
    "node,state,time_s,cpus,cpu_time_ns,cpu_allocated_ns,memory_peak_bytes,memory_allocated_bytes,"
    "io_read_bytes,io_write_bytes,io_read_call_bytes,io_write_call_bytes,wasted_node_s,flags\n";

}  // namespace

std::string report_csv(const std::vector<Timeline>& starts, const ReportOptions& options) {
  std::string out = kJobColumns;
  out += options.nodes ? kNodeColumns : kRowColumns;
  for (const auto& timeline : starts) {
    if (options.nodes) {
      for (const auto& node : timeline.nodes) out += node_line(timeline.job, node);
      continue;
    }
    for (const auto& row : options.instances ? timeline.detail : timeline.rows) {
      out += row_line(timeline.job, row);
    }
  }
  return out;
}

}  // namespace sphase
