#include "job_submit/script_scan.h"

#include <cstddef>

#include "common/profile_key.h"

namespace sphase {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// Ends one command: what follows is not an argument of it.
bool is_separator(char c) {
  return c == '\n' || c == ';' || c == '|' || c == '&' || c == '(' || c == ')' || c == '`';
}

/// The words of a script; a separator is a word of its own.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  bool next(std::string_view& word) {
    for (;;) {
      skip_blanks();
      if (at_ == text_.size()) return false;
      if (text_[at_] != '#') break;
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    }
    const std::size_t begin = at_;
    if (is_separator(text_[at_])) {
      ++at_;
    } else {
      while (at_ < text_.size() && !is_blank(text_[at_]) && !is_separator(text_[at_])) ++at_;
    }
    word = {text_.data() + begin, at_ - begin};
    return true;
  }

  /// As if the last word had not been read.
  void back(std::string_view word) { at_ = static_cast<std::size_t>(word.data() - text_.data()); }

 private:
  bool continues() const {
    return text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n';
  }
  void skip_blanks() {
    while (at_ < text_.size() && (is_blank(text_[at_]) || continues())) {
      at_ += text_[at_] == '\\' ? 2 : 1;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

bool is_one_of(std::string_view word, const std::string_view* words, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (word == words[i]) return true;
  }
  return false;
}
template <std::size_t count>
bool is_one_of(std::string_view word, const std::string_view (&words)[count]) {
  return is_one_of(word, words, count);
}

bool contains(std::string_view letters, char c) {
  return letters.find(c) != std::string_view::npos;
}

/// Last component of a path: "/usr/bin/srun" is srun.
std::string_view program(std::string_view word) {
  const std::size_t slash = word.rfind('/');
  if (slash != std::string_view::npos) word.remove_prefix(slash + 1);
  return word;
}

/// Option's name and whether its value is in the same word.
std::string_view option_name(std::string_view word, bool& has_value) {
  const std::size_t equals = word.find('=');
  has_value = equals != std::string_view::npos;
  return has_value ? std::string_view(word.data(), equals) : word;
}

constexpr std::string_view kSrunSizes[] = {"--ntasks",
                                           "--nodes",
                                           "--mem",
                                           "--mem-per-cpu",
                                           "--cpus-per-task",
                                           "--ntasks-per-node",
                                           "--ntasks-per-core",
                                           "--ntasks-per-socket",
                                           "--nodelist",
                                           "--relative",
                                           "--distribution"};
constexpr std::string_view kSrunFlags[] = {
    "--label",          "--exclusive",  "--overlap",    "--unbuffered",
    "--quiet",          "--verbose",    "--pty",        "--no-kill",
    "--multi-prog",     "--overcommit", "--exact",      "--preserve-env",
    "--disable-status", "--whole",      "--spread-job", "--use-min-nodes",
    "--phase-telemetry"};
// Letters of srun's short options. Source: srun(1).
constexpr std::string_view kSrunSizeLetters = "nNcwrm";
constexpr std::string_view kSrunFlagLetters = "lOuQvVHksXhEZ";

constexpr std::string_view kMpiSizes[] = {
    "-n", "-np", "--np", "-c", "-N", "-ppn", "-npernode", "--npernode", "-perhost", "--map-by"};

/// Reads the options of an srun up to the program it starts.
bool srun_has_size(Words& words) {
  std::string_view word;
  bool value_follows = false;
  while (words.next(word)) {
    if (is_separator(word[0])) return words.back(word), false;
    if (value_follows) {
      value_follows = false;
    } else if (word[0] != '-') {
      return words.back(word), false;
    } else if (word.size() > 1 && word[1] == '-') {
      bool has_value = false;
      const std::string_view name = option_name(word, has_value);
      if (name == "--") return false;
      if (is_one_of(name, kSrunSizes)) return true;
      value_follows = !has_value && !is_one_of(name, kSrunFlags);
    } else if (word.size() > 1) {
      if (contains(kSrunSizeLetters, word[1])) return true;
      value_follows = word.size() == 2 && !contains(kSrunFlagLetters, word[1]);
    }
  }
  return false;
}

/// Options of Open MPI's and MPICH's launchers differ: any size before the end of the command.
bool mpirun_has_size(Words& words) {
  std::string_view word;
  while (words.next(word)) {
    if (is_separator(word[0])) return words.back(word), false;
    if (is_one_of(word, kMpiSizes)) return true;
  }
  return false;
}

bool sphase_has_nodes(Words& words) {
  std::string_view word;
  if (!words.next(word)) return false;
  if (word != "begin" && word != "run") return words.back(word), false;
  while (words.next(word)) {
    if (is_separator(word[0])) return words.back(word), false;
    if (word == "--") return false;
    bool has_value = false;
    if (option_name(word, has_value) == "--nodes") return true;
  }
  return false;
}

}  // namespace

ScriptFacts scan_script(std::string_view script) {
  ScriptFacts facts;
  if (script.size() > kScriptBytesHashed) script.remove_suffix(script.size() - kScriptBytesHashed);
  Words words(script);
  std::string_view word;
  while (words.next(word)) {
    word = program(word);
    if (word == "srun") {
      facts.explicit_sizes |= srun_has_size(words);
    } else if (word == "mpirun" || word == "mpiexec") {
      facts.explicit_sizes |= mpirun_has_size(words);
    } else if (word == "sphase") {
      facts.resizes_itself |= sphase_has_nodes(words);
    }
  }
  return facts;
}

}  // namespace sphase
