// --config FILE: options of a verb from a TOML file; --save-config FILE writes one.
//
//   model = "cnn"
//   data = "fashion-mnist"
//   epochs = 3
//
// Keys are the long names of the flags.  What the command line or the environment gives wins.
#pragma once
#include <CLI/App.hpp>
#include <optional>
#include <string>

#include "ridge/cli/train_flags.h"
#include "ridge/core/status.h"

namespace ridge::cli {

void AddConfigFlag(CLI::App& app);
void AddSaveConfigFlag(CLI::App& app, std::optional<std::string>& to);

// Gives every flag that nobody gave its value in the file of --config.  Throws as a flag would; the
// message then names the file.
void ApplyConfig(CLI::App& app);

// What was given, and in comments what was not.
std::string ConfigText(const TrainFlags& flags);

}  // namespace ridge::cli
