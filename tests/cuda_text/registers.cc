#include "tests/cuda_text/registers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <sstream>

namespace ridge::cuda_text {
namespace {

constexpr char kHeader[] =
    "# Registers of a thread and bytes that spill: the most of one call of tests/ops for each\n"
    "# operator, layout, dtypes of inputs and set of launched functions.  Written by\n"
    "#   RIDGE_CUDA_TEXT_WHOLE=1 RIDGE_CUDA_TEXT_WRITE=1 ridge_cuda_text_test "
    "--gtest_filter=*Nvrtc*\n";
constexpr char kVersion[] = "NVRTC ";

}  // namespace

Result<RegisterTable> ParseRegisters(const std::string& text) {
  RegisterTable table;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with("#")) continue;
    if (line.starts_with(kVersion)) {
      table.version = line.substr(sizeof(kVersion) - 1);
      continue;
    }
    Resources row;
    auto& [a, b, c, d] = row.registers;
    const size_t colon = line.find(':');
    if (colon == std::string::npos || std::sscanf(line.c_str() + colon, ": %d %d %d %d, %d", &a, &b,
                                                  &c, &d, &row.spilled_bytes) != 5)
      return Status(ErrorCode::kInvalidData, "registers.txt: no row: " + line);
    table.families[line.substr(0, colon)] = row;
  }
  return table;
}

std::string FormatRegisters(const RegisterTable& table) {
  std::string text = kHeader + (kVersion + table.version) + "\n";
  text +=
      fmt::format("# operator, layout and function: {}, spilled\n", fmt::join(kArchitectures, " "));
  for (const auto& [family, row] : table.families)
    text += fmt::format("{}: {}, {}\n", family, fmt::join(row.registers, " "), row.spilled_bytes);
  return text;
}

}  // namespace ridge::cuda_text
