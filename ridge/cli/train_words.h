// The words of a `ridge train` that another verb will start.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/train/options/options.h"

namespace ridge::cli {

struct TrainWords {
  TrainOptions options;  // resolved; of a run that goes on, the run's
  bool resumes = false;
  std::set<std::string> given;  // keys, by the words, the environment or --config
};

// `words`: behind "train".  Fails as the verb would before it loads anything.
Result<TrainWords> ReadTrainWords(const std::vector<std::string>& words);

}  // namespace ridge::cli
