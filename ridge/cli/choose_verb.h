// ChooseVerb: the flags of `ridge choose`, and what all its tables take from them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ridge/cli/choose_serving.h"
#include "ridge/cli/planning.h"
#include "ridge/cli/train_flags.h"
#include "ridge/plan/choose/offer.h"
#include "ridge/plan/hardware/hardware.h"

namespace ridge::cli {

struct ChooseVerb {
  TrainFlags train;
  OutputFlags output;
  std::optional<int64_t> data_size, nodes;
  std::optional<std::string> deadline, budget, power, electricity, own, buy, among, order, html;
  std::optional<std::string> host_price, why, cluster, layouts;
  std::optional<double> years, use, pue;
  bool all = false, json = false, markdown = false, frameworks = false;
  ServeFlags serve;
};

// "a,b": its names.
std::vector<std::string> ListOf(const std::optional<std::string>& text);

// Those of --among, else the catalog, and those of --own and --buy.  Fails as FindHardware.
Result<std::vector<Hardware>> DevicesOf(const ChooseVerb& verb);

// Without --precision the type that the device multiplies fastest.
std::string PrecisionFor(const ChooseVerb& verb, const Hardware& hardware);

// "resnet50, batch 256", with --data-size "resnet50, batch 256, 90 epochs of 1,281,167 samples".
std::string TitleOf(const ChooseVerb& verb);

// What the user allows and has.  Fails with kInvalidArgument for amounts and devices that are none,
// and for terms of ownership without devices to buy.
Result<ChooseLimits> LimitsOf(const ChooseVerb& verb);
void AddLimits(CLI::App& app, ChooseVerb& verb);

// --json, --markdown and --html name no two things for standard output.
Status CheckOutputs(const ChooseVerb& verb);

// `--frameworks`: which programs train the model on the devices of --among.
Result<int> RunFrameworks(const ChooseVerb& verb, const Terminal& terminal);

}  // namespace ridge::cli
