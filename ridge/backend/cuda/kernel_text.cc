#include "ridge/backend/cuda/kernel_text.h"

#include <algorithm>
#include <cctype>

#include "ridge/core/rounding.h"
#include "ridge/core/status.h"

namespace ridge::cuda {
namespace {

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

const std::string& ValueOf(std::string_view name,
                           const std::vector<std::pair<std::string_view, std::string>>& values) {
  for (const auto& [key, value] : values) {
    if (key == name) return value;
  }
  throw Bug("a kernel's text has no value for $" + std::string(name));
}

}  // namespace

std::string FillText(std::string_view text,
                     const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string filled;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      filled += text[at++];
      continue;
    }
    const bool braced = at + 1 < text.size() && text[at + 1] == '{';
    const size_t begin = at + (braced ? 2 : 1);
    size_t end = begin;
    while (end < text.size() && IsNameCharacter(text[end])) ++end;
    filled += ValueOf(text.substr(begin, end - begin), values);
    at = end + (braced ? 1 : 0);
  }
  return filled;
}

Argument KernelText::Reserve(int64_t bytes) {
  constexpr int64_t kAlignmentBytes = 256;
  const Argument argument = Argument::Workspace(workspace_bytes);
  workspace_bytes += RoundUp(bytes, kAlignmentBytes);
  return argument;
}

int64_t BlocksFor(int64_t items, int threads) {
  return std::clamp<int64_t>(CeilDiv(items, threads), 1, kMostBlocks);
}

int64_t PacksAhead(int64_t groups, int64_t bytes) {
  constexpr int64_t kBytesAhead = 64, kMostAhead = 4;
  constexpr int64_t kBusyThreads = kMostBlocks / 4 * kBlockThreads;  // all of them come first
  const int64_t wanted = kBytesAhead / std::max<int64_t>(bytes, 1);
  return std::clamp<int64_t>(std::min(wanted, groups / kBusyThreads), 1, kMostAhead);
}

int64_t BlocksForRows(int64_t rows) { return std::clamp<int64_t>(rows, 1, kMostBlocks); }

int ThreadsForRow(int64_t elements) {
  int threads = kWarpThreads;
  while (threads < kBlockThreads && threads < elements) threads *= 2;
  return threads;
}

}  // namespace ridge::cuda
