// Software: a program that trains on a device, how its steps are priced, and how well that held.
//
// The roofline of planned_device.h says what a device allows.  A program takes that times a scale:
// the median over published trainings of it, one number a program and precision for all devices.
// bench/published_cases.py fits the scales and writes them (software.toml).
#pragma once
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

struct Software {
  std::string id;         // "torch"
  std::string name;       // "PyTorch, eager"
  std::string precision;  // of products: "f32", "tf32" or "f16", which is bf16's too
  // Pointwise nodes and epilogues run step by step, attention writes its scores, and each kernel is
  // launched on its own.
  bool eager = false;
  // Images lie channels-first, so that convolutions of 16 bits copy them.
  bool channels_first = false;
  double scale = 1;  // seconds of a step over those of the roofline
  // Seconds of a step over those with the scale: 8 of 10 published trainings lie between.
  double low = 1, high = 1;
  std::string evidence;  // "33 trainings on 7 devices, published"
  // Bytes of activations and workspaces over those of ridge that computes nothing again; 0: nothing
  // is known.  The peak lies between these times it, by `memory_evidence`.
  double memory_scale = 0;
  double memory_low = 1, memory_high = 1;
  std::string memory_evidence;
};

inline constexpr const char* kOwnSoftware = "ridge";

// All programs and precisions that are known.
const std::vector<Software>& SoftwareCatalog();

// The program `id` with products of `precision`.  Fails with kInvalidArgument for an unknown
// program (the message lists what there is), and for a precision that nothing is known of.
Result<Software> FindSoftware(const std::string& id, const std::string& precision);

}  // namespace ridge
