#include "tests/crossing/laws.h"

#include <fmt/format.h>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/backend/cpu/nominal_profile.h"
#include "ridge/core/instructions.h"
#include "tests/crossing/hostile_backend.h"

namespace ridge::crossing {
namespace {

Finding Broken(std::string what) { return {Verdict::kBroken, std::move(what)}; }

// The product may refuse a training, but only with a reason of the user's.
Finding Refused(const Status& status) {
  if (status.code() == ErrorCode::kInternal) return Broken(status.message());
  return {Verdict::kSkipped, status.message()};
}

// Adam divides by the size of gradients: where they are rounding, so is the quotient.
bool RoundingGrows(const Net& net, const Setting& setting) {
  return net.dtype == "f32" && setting.optimizer.starts_with("adam");
}

// What a planner does wrong is a sum too many or too few; norms of nearly equal numbers make much
// of f32's rounding.
double RoundingBound(const Net& net) { return net.dtype == "f64" ? 1e-6 : 2e-2; }

// Of those that every setting has: variables and what the last update said.  Codes of moments are
// left out: where all gradients of a block are rounding, they may be any.
Left Variables(const Left& left) {
  Left kept;
  for (const auto& [name, values] : left) {
    const bool codes = left.contains(name + "_absmax");
    if (name.find(' ') == std::string::npos && !name.ends_with("_sum") && !codes)
      kept[name] = values;
  }
  return kept;
}

Setting Plain(const Setting& setting) {
  Setting plain;
  plain.accumulate = setting.accumulate;
  plain.optimizer = setting.optimizer;
  plain.state = setting.state;
  plain.passes = false;
  return plain;
}

Setting OneAfterTheOther(Setting setting) {
  setting.in_place = false;
  setting.lanes = 1;
  setting.recompute = "off";
  return setting;
}

}  // namespace

struct Laws::Machines {
  struct Opened {
    std::unique_ptr<Backend> backend;
    Machine machine;
    explicit Opened(std::unique_ptr<Backend> made) : backend(std::move(made)) {
      machine.backend = backend.get();
      machine.profile = NominalProfile(backend->threads(), UsedInstructions());
    }
  };
  Opened hostile{MakeHostileBackend()};
  Opened one{std::move(*MakeCpuBackend(1))};
  Opened two{std::move(*MakeCpuBackend(2))};
};

Laws::Laws() : machines_(std::make_unique<Machines>()) {}
Laws::~Laws() = default;

Finding Laws::CheckPlan(const Net& net, const Setting& setting, Uses& uses) const {
  const Machine& machine = machines_->hostile.machine;
  const std::string text = TextOf(net);
  const Result<Training> training = BuildTraining(text, setting, machine);
  if (!training.ok()) return Refused(training.status());
  const Result<Left> want = Interpret(*training);
  if (!want.ok()) return Broken("interpreter: " + want.status().message());
  if (!IsTame(*want)) return {Verdict::kSkipped, "large numbers"};
  const Result<Left> have = Execute(*training, setting, machine, uses);
  if (!have.ok()) return Broken(have.status().message());
  if (const std::string found = Difference(*want, *have, 0); !found.empty())
    return Broken("not the interpreter's: " + found);
  if (RoundingGrows(net, setting)) return {};
  const Result<Training> plain = BuildTraining(text, Plain(setting), machine);
  if (!plain.ok()) return Refused(plain.status());
  const Result<Left> known = Interpret(*plain);
  if (!known.ok()) return Broken("interpreter: " + known.status().message());
  const std::string found = Difference(Variables(*known), *want, RoundingBound(net));
  return found.empty() ? Finding{} : Broken("not the plain training's: " + found);
}

Finding Laws::CheckKernels(const Net& net, const Setting& setting, Uses& uses) const {
  const std::string text = TextOf(net);
  const Setting base = OneAfterTheOther(setting);
  const Machine& one = machines_->one.machine;
  const Result<Training> before = BuildTraining(text, base, one);
  if (!before.ok()) return Refused(before.status());
  const Result<Training> after = BuildTraining(text, setting, one);
  if (!after.ok()) return Refused(after.status());
  const Result<Training> plain = BuildTraining(text, Plain(setting), one);
  if (!plain.ok()) return Refused(plain.status());
  const Result<Left> known = Interpret(*plain);
  if (!known.ok()) return Broken("interpreter: " + known.status().message());
  if (!IsTame(*known)) return {Verdict::kSkipped, "large numbers"};
  const Result<Left> want = Execute(*before, base, one, uses);
  if (!want.ok()) return Broken(want.status().message());
  const Result<Left> have = Execute(*after, setting, one, uses);
  if (!have.ok()) return Broken(have.status().message());
  if (const std::string found = Difference(*want, *have, 0); !found.empty())
    return Broken("other bits than one node after the other: " + found);
  if (RoundingGrows(net, setting)) return {};
  const Left rounded = Variables(*known);
  if (const std::string found = Difference(rounded, *want, RoundingBound(net)); !found.empty())
    return Broken("not the interpreter's: " + found);
  const Result<Left> two = Execute(*after, setting, machines_->two.machine, uses);
  if (!two.ok()) return Broken(two.status().message());
  const std::string found = Difference(rounded, *two, RoundingBound(net));
  return found.empty() ? Finding{} : Broken("on two threads, not the interpreter's: " + found);
}

}  // namespace ridge::crossing
