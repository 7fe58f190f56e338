// ring_fuzz_seed FILE: a sound ring, from which fuzzing begins: nested phases, a value, a shell's.
#include <cstdio>
#include <cstring>
#include <string>

#include "common/ring.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  struct One {
    std::uint8_t type, flags;
    const char* text;
    std::uint16_t depth;
  };
  constexpr One kAll[] = {{SPHASE_BEGIN, 0, "solve", 0},
                          {SPHASE_BEGIN, 0, "iterate", 1},
                          {SPHASE_VALUE, 0, "residual", 2},
                          {SPHASE_END, 0, "iterate", 1},
                          {SPHASE_END, 0, "", 0},
                          {SPHASE_BEGIN, SPHASE_FLAG_SHELL, "a/b", 0xffff},
                          {SPHASE_ATTR, 0, "key\\0value", 0},
                          {SPHASE_END, SPHASE_FLAG_SHELL, "", 0xffff}};
  FILE* file = std::fopen(argv[1], "wb");
  if (file == nullptr) return 1;
  std::uint64_t seq = 0;
  for (const One& one : kAll) {
    sphase_record record{};
    record.seq = ++seq;
    record.client = 1;
    record.tid = 7;
    record.type = one.type;
    record.flags = one.flags;
    record.depth = one.depth;
    record.text_len = static_cast<std::uint8_t>(std::strlen(one.text));
    std::memcpy(record.text, one.text, record.text_len);
    std::fwrite(&record, sizeof(record), 1, file);
  }
  return std::fclose(file) == 0 ? 0 : 1;
}
