// `ridge choose --serve`: which devices serve models within a latency, a power and a memory.
#pragma once
#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ridge/cli/train_flags.h"
#include "ridge/plan/choose/serving.h"

namespace ridge::cli {

struct ServeFlags {
  bool serve = false;
  std::optional<std::string> rate, latency, board_power, input, prompt, sequences;
  std::optional<int64_t> streams, copies, output;
};

void AddServeFlags(CLI::App& app, ServeFlags& flags);

// Fails with kInvalidArgument when one of them is given without --serve.
Status RefuseServeFlags(const ServeFlags& flags);

// What `ridge choose` was asked beside the flags of serving.
struct ServeRequest {
  const TrainFlags& train;
  const ServeFlags& flags;
  std::vector<Hardware> devices;
  std::vector<std::string> own;  // those that cost electricity alone
  double usd_kwh = 0.15;
  ServingOrder order = ServingOrder::kCost;
  bool all = false, json = false;
};

// The exit code: that of a run that does not fit where no device keeps all limits.
Result<int> RunServing(const ServeRequest& request, const Terminal& terminal);

}  // namespace ridge::cli
