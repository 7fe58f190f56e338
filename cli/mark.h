// The subcommands that a job script marks its phases with: begin, end, value, attr, run.
#pragma once

/// argv[1] is one of the five words. Returns the exit code: 0, or that of the command that `run`
/// ran. Called before anything slow, since a script may mark often; needs no other part of sphase.
int mark_main(int argc, char** argv);
