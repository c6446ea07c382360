#include "tests/crossing/shrink.h"

#include <algorithm>

namespace ridge::crossing {
namespace {

// Line `gone` is replaced by `by` wherever it is read.
Net Without(const Net& net, int gone, int by) {
  Net less = net;
  for (Line& line : less.lines) std::replace(line.reads.begin(), line.reads.end(), gone, by);
  std::replace(less.heads.begin(), less.heads.end(), gone, by);
  return less;
}

// Heads gone, and lines replaced by earlier ones of their shape, nearest first.
std::vector<Net> Smaller(const Net& net) {
  std::vector<Net> smaller;
  for (size_t h = 0; h < net.heads.size() && net.heads.size() > 1; ++h) {
    smaller.push_back(net);
    smaller.back().heads.erase(smaller.back().heads.begin() + static_cast<std::ptrdiff_t>(h));
  }
  const std::vector<bool> needed = NeededLines(net);
  for (int i = static_cast<int>(net.lines.size()); i-- > 0;) {
    const Line& line = net.lines[static_cast<size_t>(i)];
    if (!needed[static_cast<size_t>(i)]) continue;
    for (int by = 0; by < i; ++by) {
      if (net.lines[static_cast<size_t>(by)].dims == line.dims)
        smaller.push_back(Without(net, i, by));
    }
    for (const int read : line.reads) {  // the loss takes any shape
      if (std::find(net.heads.begin(), net.heads.end(), i) == net.heads.end()) continue;
      smaller.push_back(net);
      std::replace(smaller.back().heads.begin(), smaller.back().heads.end(), i, read);
    }
  }
  return smaller;
}

}  // namespace

Case Shrink(Case start, const std::function<bool(const Case&)>& broken) {
  for (bool shrunk = true; shrunk;) {
    shrunk = false;
    for (const Setting& setting : Simpler(start.setting)) {
      if (!broken({start.net, setting})) continue;
      start.setting = setting;
      shrunk = true;
      break;
    }
    if (shrunk) continue;
    for (Net& net : Smaller(start.net)) {
      if (!broken({net, start.setting})) continue;
      start.net = std::move(net);
      shrunk = true;
      break;
    }
  }
  return start;
}

}  // namespace ridge::crossing
