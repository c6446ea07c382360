#include "ridge/core/instructions.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>

#include "hwy/targets.h"

namespace ridge {
namespace {

// "avx2_vnni" -> kAvx2
Instructions LimitOf(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name == "sse41" || name == "avx") return Instructions::kSse4;
  return name.starts_with("avx2") ? Instructions::kAvx2 : Instructions::kAvx512;
}

Instructions FindUsed() {
  const char* text = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (text == nullptr) text = std::getenv("DNNL_MAX_CPU_ISA");
  return std::min(CpuInstructions(), text == nullptr ? Instructions::kAvx512 : LimitOf(text));
}

}  // namespace

Instructions CpuInstructions() {
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512) return Instructions::kAvx512;
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return avx2 ? Instructions::kAvx2 : Instructions::kSse4;
}

Instructions UsedInstructions() {
  static const Instructions used = FindUsed();
  return used;
}

// DisableTargets() would not last: SupportedTargets() forgets it when kernels are chosen next.
void LimitInstructions() {
  const Instructions used = UsedInstructions();
  if (used == CpuInstructions()) return;
  int64_t above = HWY_AVX3 | HWY_AVX3_DL;
  if (used == Instructions::kSse4) above |= HWY_AVX2;
  const int64_t targets = hwy::SupportedTargets() & ~above;
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(targets);
}

const char* InstructionsName(Instructions instructions) {
  switch (instructions) {
    case Instructions::kSse4:
      return "sse4";
    case Instructions::kAvx2:
      return "avx2";
    case Instructions::kAvx512:
      return "avx512";
  }
  return "";
}

std::optional<InstructionSet> ParseInstructionSet(const std::string& name) {
  if (name == "sse41" || name == "avx") return InstructionSet{};
  if (name.starts_with("avx2")) return InstructionSet{Instructions::kAvx2};
  if (!name.starts_with("avx512_core")) return std::nullopt;
  const bool bf16 = name != "avx512_core" && name != "avx512_core_vnni";
  return InstructionSet{Instructions::kAvx512, bf16};
}

const char* InstructionSetName(const InstructionSet& set) {
  if (set.bf16) return "avx512_core_bf16";
  return set.vectors == Instructions::kAvx512 ? "avx512_core"
         : set.vectors == Instructions::kAvx2 ? "avx2"
                                              : "sse41";
}

}  // namespace ridge
