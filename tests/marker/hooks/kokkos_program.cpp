// A program that knows Kokkos and nothing of sphase.
#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ProfileSection.hpp>
#include <cstdio>

int main(int argc, char* argv[]) {
  Kokkos::initialize(argc, argv);
  {
    Kokkos::Profiling::pushRegion("solve");
    for (int i = 0; i < 2; ++i) {
      Kokkos::Profiling::pushRegion("iterate");
      double sum = 0;
      Kokkos::parallel_reduce(
          "sum", 1000, KOKKOS_LAMBDA(const int n, double& s) { s += n; }, sum);
      Kokkos::Profiling::markEvent("converged");
      Kokkos::Profiling::popRegion();
    }
    Kokkos::Profiling::ProfilingSection section("write");
    section.start();
    section.stop();
    section.start();
    section.stop();
    Kokkos::Profiling::popRegion();
    Kokkos::Profiling::popRegion();  // one too many
  }
  std::printf("loaded %d\n", Kokkos::Tools::profileLibraryLoaded() ? 1 : 0);
  Kokkos::finalize();
}
