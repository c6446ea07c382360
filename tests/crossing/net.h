// Random forward graphs with a loss whose samples do not know of each other, as lines that can be
// left out one by one.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ridge::crossing {

inline constexpr int64_t kBatch = 8;

// NAME = CALL, where $0, $1 in the call stand for the lines whose results it reads.
struct Line {
  std::string name;
  std::string call;
  std::vector<int> reads;             // lines
  std::vector<int64_t> dims;          // of the result, of one sample
  std::vector<std::string> declares;  // parameters and inputs, as lines of text
  std::string more_results;           // ", mean, rstd"
  std::string then;                   // lines of text behind it
};

struct Net {
  std::string dtype;  // "f64"
  std::vector<Line> lines;
  std::vector<int> heads;  // lines of which the loss is made
};

Net DrawNet(uint64_t seed);

// The graph as text; lines that no head needs are left out.
std::string TextOf(const Net& net);

// Lines that some head needs.
std::vector<bool> NeededLines(const Net& net);

}  // namespace ridge::crossing
