// The subcommands without the rest of the `sphase` command, for tests.
#include "cli/mark.h"

int main(int argc, char** argv) { return mark_main(argc, argv); }
