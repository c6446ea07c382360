// Random trainings through the planner in all its settings.  What is checked: laws.h.
//
//   ridge_crossing [--seeds FIRST:END] [--settings N] [--law plan|kernels|both]
//
// A broken law is shrunk and printed as a text graph with its setting; exit 1.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

#include "tests/crossing/shrink.h"

namespace ridge::crossing {
namespace {

struct Options {
  uint64_t first = 0, end = 100;
  int settings = 6;
  std::string law = "both";
};

// Throws std::invalid_argument on what is none of these.
Options ParseOptions(int count, char** words) {
  Options options;
  if (count % 2 == 0) throw std::invalid_argument(words[count - 1]);
  for (int i = 1; i < count; i += 2) {
    const std::string flag = words[i], value = words[i + 1];
    if (flag == "--seeds") {
      options.first = std::stoull(value);
      options.end = std::stoull(value.substr(value.find(':') + 1));
    } else if (flag == "--settings") {
      options.settings = std::stoi(value);
    } else if (flag == "--law") {
      options.law = value;
    } else {
      throw std::invalid_argument(flag);
    }
  }
  return options;
}

struct Law {
  const char* name;
  Finding (Laws::*check)(const Net&, const Setting&, Uses&) const;
};

constexpr Law kLaws[] = {{"plan", &Laws::CheckPlan}, {"kernels", &Laws::CheckKernels}};

// A Bug is a broken law too.
Finding Check(const Laws& laws, const Law& law, const Case& c, Uses& uses) {
  try {
    return (laws.*law.check)(c.net, c.setting, uses);
  } catch (const std::exception& error) {
    return {Verdict::kBroken, error.what()};
  }
}

void Report(const Laws& laws, const Law& law, uint64_t seed, const Case& found) {
  Uses uses;
  const Case least = Shrink(
      found, [&](const Case& c) { return Check(laws, law, c, uses).verdict == Verdict::kBroken; });
  fmt::print("seed {}, law '{}': {}\n  {}\n{}\n", seed, law.name,
             Check(laws, law, least, uses).what, TextOf(least.setting), TextOf(least.net));
  std::fflush(stdout);
}

int Run(const Options& options) {
  const Laws laws;
  int64_t held = 0, skipped = 0, broken = 0;
  Uses uses[std::size(kLaws)];
  for (uint64_t seed = options.first; seed < options.end; ++seed) {
    const Net net = DrawNet(seed);
    for (size_t l = 0; l < std::size(kLaws); ++l) {
      const Law& law = kLaws[l];
      if (options.law != "both" && options.law != law.name) continue;
      for (const Setting& setting : DrawSettings(seed, options.settings)) {
        const Finding finding = Check(laws, law, {net, setting}, uses[l]);
        held += finding.verdict == Verdict::kHolds ? 1 : 0;
        skipped += finding.verdict == Verdict::kSkipped ? 1 : 0;
        if (finding.verdict != Verdict::kBroken) continue;
        ++broken;
        Report(laws, law, seed, {net, setting});
        break;  // the other settings would say the same
      }
    }
  }
  for (size_t l = 0; l < std::size(kLaws); ++l) {
    if (options.law != "both" && options.law != kLaws[l].name) continue;
    const Uses& u = uses[l];
    fmt::print(
        "law '{}': {} nodes in sections, {} packed variables, {} copies, {} results in place, {} "
        "values in the first slice's sums, {} recomputed, {} with logits in chunks\n",
        kLaws[l].name, u.in_sections, u.packed, u.copies, u.in_place, u.first_slices, u.recomputed,
        u.chunked);
    if (u.Missing().empty()) continue;
    fmt::print("law '{}' saw no {}\n", kLaws[l].name, u.Missing());
    ++broken;
  }
  fmt::print("seeds {}:{}: {} trainings as promised, {} skipped, {} broken\n", options.first,
             options.end, held, skipped, broken);
  return broken > 0 ? 1 : 0;
}

}  // namespace
}  // namespace ridge::crossing

int main(int count, char** words) {
  try {
    return ridge::crossing::Run(ridge::crossing::ParseOptions(count, words));
  } catch (const std::invalid_argument& error) {
    fmt::print(stderr, "ridge_crossing: {}\n", error.what());
    return 2;
  }
}
