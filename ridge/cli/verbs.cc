#include "ridge/cli/verbs.h"

namespace ridge::cli {

const std::vector<Verb>& Verbs() {
  static const std::vector<Verb> kVerbs = {
      {"opt", "Rewrites a graph in text form by the passes, and says what that saved",
       "ridge opt net.ridge > simpler.ridge\n"
       "ridge opt net.ridge --pass cse        one pass alone\n"
       "cat net.ridge | ridge opt -",
       AddOpt},
      {"models", "Lists the built-in models and what they take", "ridge models", AddModels},
      {"doctor", "Says what was found on this machine: CPU, memory, libraries, data",
       "ridge doctor\n"
       "ridge doctor --json",
       AddDoctor},
      {"completion", "Prints the completion script of a shell",
       "source <(ridge completion bash)\n"
       "ridge completion zsh > ~/.zfunc/_ridge\n"
       "ridge completion fish > ~/.config/fish/completions/ridge.fish",
       AddCompletion},
  };
  return kVerbs;
}

}  // namespace ridge::cli
