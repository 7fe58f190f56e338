#include "tests/job_submit/fake_slurmctld.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace {

constexpr std::uint64_t kMagic = 0x51C4A110C51C4A11U;
struct Head {
  std::uint64_t magic;
  std::size_t size;
};

std::atomic<std::int64_t> living{0}, logged{0};
std::mutex log_mutex;
std::string last_line;

Head* head_of(void* memory) {
  Head* head = static_cast<Head*>(memory) - 1;
  if (head->magic != kMagic) {
    std::fprintf(stderr, "not from Slurm's allocator: %p\n", memory);
    std::abort();
  }
  return head;
}

void* allocate(std::size_t size) {
  Head* head = static_cast<Head*>(std::calloc(1, sizeof(Head) + size));
  if (head == nullptr) std::abort();
  *head = {kMagic, size};
  ++living;
  return head + 1;
}

void release(void* memory) {
  if (memory == nullptr) return;
  Head* head = head_of(memory);
  head->magic = 0;
  --living;
  std::free(head);
}

}  // namespace

// As in Slurm's src/common: grown memory is zeroed, sizes are in items.
extern "C" void* slurm_xrecalloc(void** items, size_t count, size_t size, bool, bool, const char*,
                                 int, const char*) {
  void* more = allocate(count * size);
  if (*items != nullptr) {
    const std::size_t old = head_of(*items)->size;
    std::memcpy(more, *items, old < count * size ? old : count * size);
    release(*items);
  }
  return *items = more;
}

extern "C" __attribute__((format(printf, 2, 3))) void slurm_xstrfmtcat(char** text,
                                                                       const char* format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const int more = std::vsnprintf(nullptr, 0, format, arguments);
  const std::size_t used = *text != nullptr ? std::strlen(*text) : 0;
  char* joined = static_cast<char*>(allocate(used + static_cast<std::size_t>(more) + 1));
  if (*text != nullptr) std::memcpy(joined, *text, used);
  std::vsnprintf(joined + used, static_cast<std::size_t>(more) + 1, format, again);
  va_end(again);
  va_end(arguments);
  release(*text);
  *text = joined;
}

extern "C" __attribute__((format(printf, 1, 2))) void slurm_info(const char* format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  ++logged;
  const std::lock_guard lock(log_mutex);
  last_line = line;
}

namespace sphase::testing {

char* slurm_string(const char* text) {
  if (text == nullptr) return nullptr;
  const std::size_t size = std::strlen(text) + 1;
  return static_cast<char*>(std::memcpy(allocate(size), text, size));
}

char** slurm_array(const std::vector<std::string>& entries) {
  char** array = static_cast<char**>(allocate((entries.size() + 1) * sizeof(char*)));
  for (std::size_t i = 0; i < entries.size(); ++i) array[i] = slurm_string(entries[i].c_str());
  return array;
}

// Source: src/common/slurm_protocol_defs.c, slurm_init_job_desc_msg(), 22.05.
void init_job(job_desc_msg_t& job) {
  std::memset(&job, 0, sizeof(job));
  job.het_job_offset = job.job_id = job.num_tasks = job.time_limit = job.time_min = NO_VAL;
  job.min_cpus = job.max_cpus = job.min_nodes = job.max_nodes = NO_VAL;
  job.cpus_per_task = job.boards_per_node = job.sockets_per_board = job.sockets_per_node = NO_VAL16;
  job.cores_per_socket = job.threads_per_core = job.ntasks_per_node = job.ntasks_per_socket =
      NO_VAL16;
  job.ntasks_per_core = job.ntasks_per_board = job.ntasks_per_tres = job.pn_min_cpus = NO_VAL16;
  job.plane_size = NO_VAL16;
  job.pn_min_memory = NO_VAL64;
}

void free_string(char*& text) {
  release(text);
  text = nullptr;
}

void free_job(job_desc_msg_t& job) {
  for (char** text :
       {&job.account, &job.admin_comment, &job.array_inx, &job.comment, &job.cpus_per_tres,
        &job.dependency, &job.features, &job.mem_per_tres, &job.name, &job.partition, &job.qos,
        &job.req_nodes, &job.reservation, &job.script, &job.tres_per_job, &job.tres_per_node,
        &job.tres_per_socket, &job.tres_per_task, &job.work_dir}) {
    free_string(*text);
  }
  for (std::uint32_t i = 0; job.environment != nullptr && i < job.env_size; ++i) {
    release(job.environment[i]);
  }
  release(job.environment);
  for (std::uint32_t i = 0; job.spank_job_env != nullptr && i < job.spank_job_env_size; ++i) {
    release(job.spank_job_env[i]);
  }
  release(job.spank_job_env);
  job.environment = job.spank_job_env = nullptr;
}

std::int64_t living_allocations() { return living; }
std::int64_t log_lines() { return logged; }
std::string last_log_line() {
  const std::lock_guard lock(log_mutex);
  return last_line;
}

}  // namespace sphase::testing
