// The rows of options.def: flags, help, JSON, --config, --resume and docs/options.md walk them.
#pragma once
#include <cstdint>
#include <string_view>

#include "ridge/train/options/options.h"

namespace ridge {

// What an option takes.  Whether that is a whole number, a number, text or a list of texts is its
// member's type.
struct OptionValues {
  std::string_view name;  // "N", "FILE"; of choices "auto|direct"
  double least = 0;
  double most = 1e300;
  bool above = false;  // the least itself is out of range
  bool choices = false;
  bool size = false;  // bytes: "24GB"
};

namespace option_values {
constexpr OptionValues Whole(double least, std::string_view name) {
  return {.name = name, .least = least};
}
constexpr OptionValues Between(double least, double most) {
  return {.name = "N", .least = least, .most = most};
}
constexpr OptionValues Number(double least) { return {.name = "X", .least = least}; }
constexpr OptionValues Above(double least) { return {.name = "X", .least = least, .above = true}; }
constexpr OptionValues Text(std::string_view name) { return {.name = name}; }
constexpr OptionValues OneOf(std::string_view choices) {
  return {.name = choices, .choices = true};
}
constexpr OptionValues StepsOrTime() { return {.name = "STEPS"}; }
constexpr OptionValues Size() { return {.name = "SIZE", .size = true}; }
constexpr OptionValues Switch() { return {}; }
}  // namespace option_values

// Of help, in its order.  Those of kCpu and kGpu are of one kind of device: refused beside another.
enum class OptionGroup {
  kNone,
  kModel,
  kData,
  kTraining,
  kMachine,
  kCpu,
  kGpu,  // that is here
  kDevices,
  kRunFolder
};

// What `--resume` does with a value that the user gives again.
enum class OnResume {
  kSame,        // refuses another than the run was started with
  kSameOrAuto,  // as kSame; "auto" is what was chosen then
  kTaken,       // goes on with it
  kTotal,       // goes on until it, unless the run is past it (Train)
  kIgnored,
};

struct OptionInfo {
  std::string_view key;
  OptionValues values;
  OptionGroup group = OptionGroup::kNone;
  OnResume on_resume = OnResume::kSame;
  const char* lacking = nullptr;
  std::string_view doc;
};

// The refusal of an option of kCpu or kGpu beside --device `device`.
Status OfAnotherDevice(const OptionInfo& option, const std::string& device);

// Calls f(info, get) for every option; get(options) is its member, const or not.
template <typename F>
void ForEachOption(const F& f) {
  using namespace option_values;
  using enum OptionGroup;
  using enum OnResume;
#define RIDGE_OPTION(key, member, values, group, on_resume, lacking, doc) \
  f(                                                                      \
      OptionInfo{key, values, group, on_resume, lacking, doc},            \
      [](auto& o) -> auto& { return member; });
#include "ridge/train/options/options.def"
#undef RIDGE_OPTION
}

}  // namespace ridge
