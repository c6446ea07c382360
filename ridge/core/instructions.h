// Which vector instructions kernels may use: what the CPU has, or less where ONEDNN_MAX_CPU_ISA
// says so.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace ridge {

enum class Instructions : uint8_t { kSse4, kAvx2, kAvx512 };  // kSse4: and all below

// The CPU's; of the whole process, and the same in each call.
Instructions CpuInstructions();
// What is used of them.  ONEDNN_MAX_CPU_ISA (or DNNL_MAX_CPU_ISA) is read as oneDNN reads it; names
// that are unknown limit nothing.
Instructions UsedInstructions();
// Our own kernels keep to UsedInstructions() from here on, as the library's do by themselves.
void LimitInstructions();
// "sse4", "avx2", "avx512"
const char* InstructionsName(Instructions instructions);

// What kernels are chosen by: vectors, and products of bf16.
struct InstructionSet {
  Instructions vectors = Instructions::kSse4;
  bool bf16 = false;
  friend bool operator==(const InstructionSet&, const InstructionSet&) = default;
};
// By oneDNN's name: "avx2", "avx512_core_bf16".  None for unknown names.
std::optional<InstructionSet> ParseInstructionSet(const std::string& name);
// "sse41", "avx2", "avx512_core", "avx512_core_bf16"
const char* InstructionSetName(const InstructionSet& set);

}  // namespace ridge
