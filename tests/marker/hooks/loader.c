/* Runs main() of a library that is loaded for itself only, as Python loads its modules. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char* argv[]) {
  int (*run)(void) = NULL;
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library != NULL) *(void**)&run = dlsym(library, "main");
  if (run == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  return run();
}
