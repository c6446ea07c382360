// Scenarios: what is to be served, as a TOML file, and the texts that stand for its parts.
//
//   name = "four cameras"
//   latency = "80ms"                          # also power = "70W", memory = "8GiB"
//
//   [[stream]]
//   count = 4
//   input = "video:1920x1080@30"              # or "video:1920x1080@30:hevc", "jpeg:1920x1080@5"
//
//   [[model]]
//   model = "resnet50"                        # each frame of the stream
//
//   [[model]]
//   model = "llama:hidden=512"                # requests by chance
//   rate = "2/s"
//   prompt = 512
//   output = 128
//   sequences = 8
//
// Further keys of a model: `batch`, `precision`, `copies`, `stream` (the name of one), `rate`
// beside a stream: of each of its senders, where not every picture is looked at.
#pragma once
#include <string>
#include <string_view>

#include "ridge/core/status.h"
#include "ridge/plan/choose/serving.h"

namespace ridge {

// "80ms", "1.5s", "2min".  Fails with kInvalidArgument; `name` begins the message.
Result<double> ParseSeconds(const std::string& name, const std::string& text);

// "120/s", "90/min", "2/h".  Fails with kInvalidArgument.
Result<double> ParseRate(const std::string& name, const std::string& text);

// "70W", "70".  Fails with kInvalidArgument.
Result<double> ParseWatts(const std::string& name, const std::string& text);

// "video:1920x1080@30", "video:1920x1080@30:hevc", "jpeg:1920x1080@5".  Fails with
// kInvalidArgument.
Result<ServingStream> ParseStream(const std::string& name, const std::string& text);

// Gives each model what its stream says, and checks that all have a rate or none.  Fails with
// kInvalidArgument.
Status CompleteLoad(ServingLoad& load);

// Fails with kInvalidData for text that is no scenario; the message has file and line.
Result<ServingLoad> ParseScenario(std::string_view text, const std::string& path);

}  // namespace ridge
