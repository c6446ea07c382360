// Where a plan's workspaces on a GPU of NVIDIA's that is not here come from.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ridge/plan/program.h"

namespace ridge {

// What cuDNN is asked about the program's kernels, each question once, sorted.
struct WorkspaceSources {
  std::vector<std::string> recorded;    // an answer on record is in the plan
  std::vector<std::string> asked;       // an answer to this program is
  std::vector<std::string> by_formula;  // of attention, which all answers obey
  std::vector<std::string> bounded;     // an upper bound is
  std::vector<std::string> libraries;   // that answered: "cuDNN 9.19.0 (recorded)"
  // Answers whose first deterministic engine takes other bytes than the library's first choice, and
  // the largest workspace of all of them by each of the two.
  int64_t other_engines = 0;
  int64_t largest_bytes = 0, largest_first_bytes = 0;

  size_t answered() const { return recorded.size() + asked.size(); }
  size_t unanswered() const { return by_formula.size() + bounded.size(); }
  bool empty() const { return answered() == 0 && unanswered() == 0; }
};

// Empty for other devices.
WorkspaceSources WorkspaceSourcesOf(const Program& program);

// The question that stands behind a node's workspace; "" where none does.
std::string QuestionOf(const PlannedNode& node);

// By how much the largest live values are larger than with the first choices of the library, which
// may give other bits in every run; below 0 where these take more.
int64_t DeterministicBytes(const Program& program);

}  // namespace ridge
