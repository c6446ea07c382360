// The command `options KEY=VALUE ...`: whether `ridge train` takes these options.
#pragma once
#include <string>

namespace ridge {

// CheckOptions of a training of mlp on synthetic data with these options, whose VALUEs are JSON as
// in options.json: "ok", or the error.
std::string CheckOptionsText(const std::string& text);

}  // namespace ridge
