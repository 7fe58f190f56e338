// SPDX-License-Identifier: MIT
// g++ phases.cpp -lsphase; srun --phase-telemetry ./a.out
#include <sphase.hpp>
#include <stdexcept>

static void iterate(int i) {
  const sphase::Scope scope("iterate");
  sphase::value("residual", 1.0 / (i + 1));
  if (i == 2) throw std::runtime_error("diverged");  // the phase ends all the same
}

int main() {
  const sphase::Scope solve("solve");
  sphase::attr("cells", "1000000");
  try {
    for (int i = 0; i < 3; ++i) iterate(i);
  } catch (const std::runtime_error&) {
  }
}
