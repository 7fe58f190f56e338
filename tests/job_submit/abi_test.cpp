// The plugin as it is built, and loaded as slurmctld loads it.
#include <dlfcn.h>
#include <slurm/slurm.h>

#include <cstring>

#include "tests/common/plugin_file.h"
#include "tests/job_submit/fake_slurmctld.h"

using namespace sphase::testing;

TEST_CASE("job_submit exports exactly the names of its version script") {
  CHECK(exported_by(SPHASE_TEST_PLUGIN) == names_in_map(SPHASE_TEST_MAP));
}

TEST_CASE("job_submit is bound at load, is never unloaded, and its relocations are read-only") {
  check_linking(SPHASE_TEST_PLUGIN);
}

TEST_CASE(
    "job_submit needs no library but libc, and three names of slurmctld's (not under a "
    "sanitizer)") {
#ifdef SPHASE_TEST_SANITIZED
  MESSAGE("skipped: a sanitizer brings its own libraries and names");
#else
  CHECK(needed_by(SPHASE_TEST_PLUGIN) == std::set<std::string>{"libc.so.6"});
  CHECK(taken_from_host(SPHASE_TEST_PLUGIN) ==
        std::set<std::string>{"slurm_info", "slurm_xrecalloc", "slurm_xstrfmtcat"});
#endif
}

TEST_CASE("slurmctld can load, call and unload it a thousand times (not under a sanitizer)") {
#ifdef SPHASE_TEST_SANITIZED
  MESSAGE("skipped: a module of another sanitizer runtime cannot be loaded");
#else
  setenv("SPHASE_CONF", "/nonexistent/sphase.conf", 1);
  for (int i = 0; i < 1000; ++i) {
    void* plugin = dlopen(SPHASE_TEST_PLUGIN, RTLD_NOW);
    REQUIRE_MESSAGE(plugin != nullptr, dlerror());
    const auto* type = static_cast<const char*>(dlsym(plugin, "plugin_type"));
    const auto* version = static_cast<const std::uint32_t*>(dlsym(plugin, "plugin_version"));
    CHECK(std::strcmp(type, "job_submit/phase_resize") == 0);
    CHECK(*version == SLURM_VERSION_NUMBER);
    const auto init = reinterpret_cast<int (*)()>(dlsym(plugin, "init"));
    const auto submit = reinterpret_cast<int (*)(job_desc_msg_t*, std::uint32_t, char**)>(
        dlsym(plugin, "job_submit"));
    CHECK(init() == SLURM_SUCCESS);
    job_desc_msg_t job;
    char* message = nullptr;
    init_job(job);
    CHECK(submit(&job, 0, &message) == SLURM_SUCCESS);
    free_job(job);
    free_string(message);
    dlclose(plugin);
  }
  CHECK(living_allocations() == 0);
#endif
}
