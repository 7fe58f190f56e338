// Which variables of a job the built plugin sets, so that its programs load the adapters.
#include "tests/spank/host_run.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

/// A place with the adapters of a site: empty files, since nobody loads them here.
class HooksPlace : public HostPlace {
 public:
  explicit HooksPlace(const std::vector<std::string>& adapters = {"kokkos", "nvtx", "itt",
                                                                  "preload"}) {
    std::filesystem::create_directories(folder() / "hooks");
    for (const std::string& name : adapters) folder().write("hooks/libsphase_" + name + ".so", "");
  }
  std::string file(const std::string& name) const {
    return folder() / ("hooks/libsphase_" + name + ".so");
  }

  /// "KOKKOS_TOOLS_LIBS=… …": all five variables once the plugin was there, own paths as "ours".
  std::string environment(std::vector<std::string> words) const {
    words.push_back("arg:hooks_dir=" + (folder() / "hooks"));
    for (const std::string& name : kVariables) words.push_back("show=" + name);
    const HostResult result = run_host(*this, words);
    CAPTURE(result.text);
    CHECK(result.exit_code == 0);
    CHECK(result.has("failed 0\n"));
    std::string all;
    for (const std::string& name : kVariables) {
      const std::size_t at = result.text.find("env " + name + "=");
      REQUIRE(at != std::string::npos);
      std::string line = result.text.substr(at + 4, result.text.find('\n', at) - at - 4);
      if (line.find("(unset)") != std::string::npos) continue;
      for (std::size_t ours = 0; (ours = line.find(folder().path())) != std::string::npos;) {
        line.replace(ours, (folder() / "hooks/libsphase_").size(), "ours:");
      }
      all += all.empty() ? line : " " + line;
    }
    return all;
  }

 private:
  const std::vector<std::string> kVariables = {"KOKKOS_TOOLS_LIBS", "KOKKOS_PROFILE_LIBRARY",
                                               "NVTX_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64",
                                               "LD_PRELOAD"};
};

const std::string kAll =
    "KOKKOS_TOOLS_LIBS=ours:kokkos.so NVTX_INJECTION64_PATH=ours:nvtx.so "
    "INTEL_LIBITTNOTIFY64=ours:itt.so";

}  // namespace

TEST_CASE("a recorded step gets NVTX and ITT by default, Kokkos where the site says so") {
  CHECK(HooksPlace().environment({"option=on"}) ==
        "NVTX_INJECTION64_PATH=ours:nvtx.so INTEL_LIBITTNOTIFY64=ours:itt.so");
  CHECK(HooksPlace().environment({"option=on", "arg:hooks=kokkos,nvtx,itt"}) == kAll);
}

TEST_CASE("only adapters that are there are named, and nothing is preloaded unasked") {
  CHECK(HooksPlace({"nvtx", "preload"}).environment({"option=on"}) ==
        "NVTX_INJECTION64_PATH=ours:nvtx.so");
  CHECK(HooksPlace({"none"}).environment({"option=hooks=kokkos+nvtx+itt+preload"}) == "");
}

TEST_CASE("a step that is not recorded gets none") {
  CHECK(HooksPlace().environment({}) == "");
  CHECK(HooksPlace().environment({"option=off", "arg:default=on"}) == "");
  HooksPlace broken;
  broken.recorder = "/nonexistent";
  CHECK(broken.environment({"option=on"}) == "");
}

TEST_CASE("a variable of the user's is left alone") {
  CHECK(HooksPlace().environment({"option=on", "env:KOKKOS_TOOLS_LIBS=/mine.so",
                                  "env:NVTX_INJECTION64_PATH=/nsys.so",
                                  "env:INTEL_LIBITTNOTIFY64="}) ==
        "KOKKOS_TOOLS_LIBS=/mine.so NVTX_INJECTION64_PATH=/nsys.so INTEL_LIBITTNOTIFY64=");
}

TEST_CASE("either name of the Kokkos variable keeps the adapter out") {
  const std::string rest = " NVTX_INJECTION64_PATH=ours:nvtx.so INTEL_LIBITTNOTIFY64=ours:itt.so";
  CHECK(HooksPlace().environment({"option=on", "env:KOKKOS_PROFILE_LIBRARY=/mine.so"}) ==
        "KOKKOS_PROFILE_LIBRARY=/mine.so" + rest);
  CHECK(HooksPlace().environment({"option=on", "env:KOKKOS_PROFILE_LIBRARY=/mine.so",
                                  "env:KOKKOS_TOOLS_LIBS=/mine.so"}) ==
        "KOKKOS_TOOLS_LIBS=/mine.so KOKKOS_PROFILE_LIBRARY=/mine.so" + rest);
}

TEST_CASE("a shell that may yet set the other name gets no Kokkos adapter") {
  for (const char* kind : {"step=batch", "step=interactive"}) {
    CHECK(HooksPlace().environment({"option=on", kind}) ==
          "NVTX_INJECTION64_PATH=ours:nvtx.so INTEL_LIBITTNOTIFY64=ours:itt.so");
  }
}

TEST_CASE("the job chooses: off, some, or one to preload; else the site does") {
  CHECK(HooksPlace().environment({"option=hooks=off"}) == "");
  CHECK(HooksPlace().environment({"option=hooks=itt"}) == "INTEL_LIBITTNOTIFY64=ours:itt.so");
  CHECK(HooksPlace().environment({"option=hooks=preload"}) == "LD_PRELOAD=ours:preload.so");
  CHECK(HooksPlace().environment({"option=on", "arg:hooks=off"}) == "");
  CHECK(HooksPlace().environment({"option=on", "arg:hooks=nvtx,itt"}) ==
        "NVTX_INJECTION64_PATH=ours:nvtx.so INTEL_LIBITTNOTIFY64=ours:itt.so");
  CHECK(HooksPlace().environment({"option=hooks=kokkos", "arg:hooks=off"}) ==
        "KOKKOS_TOOLS_LIBS=ours:kokkos.so");
}

TEST_CASE("what is preloaded comes after the user's own") {
  CHECK(HooksPlace().environment({"option=hooks=preload", "env:LD_PRELOAD=/a.so:/b.so"}) ==
        "LD_PRELOAD=/a.so:/b.so:ours:preload.so");
  CHECK(HooksPlace().environment({"option=hooks=preload", "env:LD_PRELOAD="}) ==
        "LD_PRELOAD=ours:preload.so");
}

TEST_CASE("what the step around this one was given is taken back, and nothing else") {
  HooksPlace place;
  const std::vector<std::string> inherited = {"env:KOKKOS_TOOLS_LIBS=" + place.file("kokkos"),
                                              "env:NVTX_INJECTION64_PATH=" + place.file("nvtx"),
                                              "env:INTEL_LIBITTNOTIFY64=/vtune.so",
                                              "env:LD_PRELOAD=/a.so:" + place.file("preload")};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), inherited.begin(), inherited.end());
    return place.environment(words);
  };
  const std::string theirs = "INTEL_LIBITTNOTIFY64=/vtune.so LD_PRELOAD=/a.so";
  CHECK(with({"option=off"}) == theirs);
  CHECK(with({"option=hooks=off"}) == theirs);
  CHECK(with({"option=hooks=preload"}) == theirs + ":ours:preload.so");
  CHECK(with({"option=on", "env:KOKKOS_PROFILE_LIBRARY=/mine.so"}) ==
        "KOKKOS_PROFILE_LIBRARY=/mine.so NVTX_INJECTION64_PATH=ours:nvtx.so " + theirs);
}
