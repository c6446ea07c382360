// LayoutCost: what a layout over many devices takes, composed of one rank's step (LocalStep).
//
//   step = kernels + recompute + tensor + pipeline + send + data + update + stragglers
// Devices are numbered with the tensor axis innermost, then data, then pipeline stages.  What is
// the plan's and what is a formula: docs/design/0042-layouts.md.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ridge/plan/choose/local_step.h"
#include "ridge/plan/hardware/collectives.h"

namespace ridge {

struct LayoutChoice {
  int64_t pipeline = 1, data = 1, tensor = 1;
  int zero = 0;  // stage of ZeRO along `data`
  bool sequence = false, recompute = false;
  int64_t samples = 1;  // of a micro-batch, of one rank of `data`
  int64_t micro_batches = 1;

  int64_t devices() const { return pipeline * data * tensor; }
  int64_t batch() const { return data * samples * micro_batches; }  // of an update
  bool operator==(const LayoutChoice&) const = default;
};

// Of the rank that keeps most.
struct LayoutBytes {
  int64_t parameters = 0, gradients = 0, optimizer = 0;
  int64_t gathered = 0;     // parameters of other ranks, for a while (zero3)
  int64_t activations = 0;  // saved, of all micro-batches in flight
  int64_t transient = 0, other = 0, runtime = 0;

  int64_t all() const {
    return parameters + gradients + optimizer + gathered + activations + transient + other +
           runtime;
  }
};

// Of an update, of the stage that takes longest.
struct LayoutSeconds {
  double kernels = 0;     // of all micro-batches
  double recompute = 0;   // the forward pass again
  double tensor = 0;      // collectives in line
  double pipeline = 0;    // that it waits for other stages
  double send = 0;        // between stages
  double data = 0;        // gradients and parameters that are not hidden behind kernels
  double update = 0;      // of the optimizer
  double stragglers = 0;  // a step waits for the slowest device

  double all() const {
    return kernels + recompute + tensor + pipeline + send + data + update + stragglers;
  }
};

struct LayoutCost {
  LayoutChoice choice;
  LayoutBytes bytes;
  LayoutSeconds seconds;
  double flops = 0;     // of a rank on the mean in an update, without recomputed ones
  double turn_s = 0;    // of a micro-batch on the slowest stage: kernels and collectives in line
  int64_t kernels = 0;  // that are launched in it

  double samples_s() const { return static_cast<double>(choice.batch()) / seconds.all(); }
};

// `all`: the devices of the choice.  None where the model has fewer blocks than stages, or a link's
// rate is not known.
std::optional<LayoutCost> ComposeLayout(const LocalStep& step, const LayoutChoice& choice,
                                        const DeviceGroup& all, double wire_share);

// No layout of these factors keeps less, whatever the micro-batches: the states of the variables in
// equal parts.  `whole`: of one device.
int64_t LeastBytes(const LocalStep& whole, const LayoutChoice& choice);

}  // namespace ridge
