/* Compiled as C99 with -pedantic: what an old application may include. */
#include "marker/sphase.h"

int sphase_test_from_c99(void);

int sphase_test_from_c99(void) {
  const int before = sphase_begin("c99");
  sphase_value("x", 1.0);
  sphase_attr("k", "v");
  return sphase_end("c99") - before;
}
