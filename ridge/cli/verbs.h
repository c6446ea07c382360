// The verbs of `ridge`, one file each.
//
// A verb adds its options to its subcommand and gives back what runs when it was chosen.  That
// returns the exit code, or the Status that the command line prints and maps to one.
#pragma once
#include <CLI/App.hpp>
#include <functional>
#include <vector>

#include "ridge/core/status.h"

namespace ridge::cli {

using VerbBody = std::function<Result<int>()>;

struct Verb {
  const char* name;
  const char* doc;       // one line, for the list of verbs
  const char* examples;  // lines below its --help
  VerbBody (*add)(CLI::App& app) = nullptr;
  std::vector<Verb> verbs = {};  // `bench step`, `bench device`
};

// In the order in which help lists them.
const std::vector<Verb>& Verbs();

VerbBody AddCompletion(CLI::App& app);
VerbBody AddDoctor(CLI::App& app);
VerbBody AddModels(CLI::App& app);
VerbBody AddOpt(CLI::App& app);

}  // namespace ridge::cli
