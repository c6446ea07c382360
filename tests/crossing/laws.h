// What the planner promises of one training in one setting.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "tests/crossing/net.h"
#include "tests/crossing/settings.h"
#include "tests/crossing/training.h"

namespace ridge::crossing {

enum class Verdict : uint8_t { kHolds, kSkipped, kBroken };

struct Finding {
  Verdict verdict = Verdict::kHolds;
  std::string what;  // of a broken law
};

class Laws {
 public:
  Laws();
  ~Laws();

  // The planned program leaves the interpreter's numbers, bit for bit but for the sign of zero, on
  // kernels of the reference in layouts of their own.  And slices, accumulation, recomputation and
  // passes leave those of the plain training, but for rounding.
  Finding CheckPlan(const Net& net, const Setting& setting, Uses& uses) const;

  // On the CPU's kernels, one thread a node: in place, side by side and recomputed, the bits are
  // those of the same kernels without.  And the numbers are the interpreter's but for rounding,
  // with two threads a node too.
  Finding CheckKernels(const Net& net, const Setting& setting, Uses& uses) const;

 private:
  struct Machines;
  std::unique_ptr<Machines> machines_;
};

}  // namespace ridge::crossing
