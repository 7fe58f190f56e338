#include "job_submit/decide.h"

namespace sphase {
namespace {

struct WhyWords {
  Why why;
  const char* word;
  const char* sentence;
};

constexpr WhyWords kWords[] = {
    {Why::kNone, "none", ""},
    {Why::kOff, "off", "resizing is off for it"},
    {Why::kArray, "array", "job arrays are not resized"},
    {Why::kHet, "het-job", "heterogeneous jobs are not resized"},
    {Why::kReservation, "reservation", "it runs in a reservation"},
    {Why::kGres, "gres", "it asks for GRES (GPUs or the like), about which nothing is learned yet"},
    {Why::kHelper, "helper", "it is made to be merged into another job"},
    {Why::kScriptSizes, "script-sizes", "its script gives sizes to srun or mpirun itself"},
    {Why::kRefused, "inconsistent", "Slurm will refuse it as it is, and say why"},
    {Why::kNoAdvice, "no-advice", "nothing was learned about it yet"},
    {Why::kUserSet, "user-set", "you set it; --phase-resize=apply lets it be changed"},
    {Why::kInteractive, "interactive",
     "srun and salloc keep what was typed, since their steps ask for the same again"},
    {Why::kNotGiven, "not-given", "it was not asked for"},
    {Why::kNodeList, "node-list", "the job names its nodes"},
    {Why::kLayout, "layout", "the job lays out its tasks by socket, core or plane"},
    {Why::kUneven, "uneven", "tasks do not divide evenly over the nodes"},
    {Why::kEnvironment, "environment", "SLURM_NTASKS in its environment is not the job's"},
    {Why::kFits, "fits", "it fits"},
    {Why::kSmall, "small", "the difference is not worth it"},
    {Why::kCeiling, "site-ceiling", "the site allows less than it needs"},
    {Why::kOtherPartition, "other-partition", "it was learned on another partition"},
    {Why::kAllMemory, "all-memory", "all memory of the nodes was asked for"},
    {Why::kCpusUnknown, "tasks-unknown", "tasks per node are not known before it starts"},
    {Why::kMemoryFollows, "memory-follows", "memory is counted per CPU and would shrink too"},
    {Why::kFewerNodes, "fewer-nodes", "it asks for fewer nodes than it was seen on"},
    {Why::kAfterKill, "after-kill", "a run was killed for memory; more than that is not known yet"},
    {Why::kUnknown, "unknown", "nothing is known about it"},
};

const WhyWords& find(Why why) {
  for (const WhyWords& words : kWords) {
    if (words.why == why) return words;
  }
  return kWords[0];
}

}  // namespace

const char* word_of(Why why) { return find(why).word; }
const char* sentence_of(Why why) { return find(why).sentence; }

const char* word_of(Field field) {
  constexpr const char* kNames[kFields] = {"nodes", "cpus", "memory", "time"};
  return kNames[static_cast<int>(field)];
}

}  // namespace sphase
