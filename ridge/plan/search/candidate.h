// PlanCandidate: a plan that the search compared with others.
#pragma once
#include <cstdint>
#include <string>

namespace ridge {

// Bytes and seconds are those of the nominal device, by which plans are chosen: a choice that a
// measurement moves would change the bits of a run from day to day.
struct PlanCandidate {
  int64_t slices = 1;             // of a batch
  std::string recompute = "off";  // or as the option --recompute has it
  int64_t loss_chunks = 1;        // of a batch's logits
  int64_t bytes = 0;              // of the process, without data
  double seconds = 0;             // of an update
  bool fits = true;
  bool chosen = false;
};

}  // namespace ridge
