// Cuts: where a training step is cut into stages.
#pragma once
#include <cstdint>
#include <vector>

#include "ridge/pipeline/step_places.h"

namespace ridge {

// By position of a step, and by interval of positions [begin, end).
class StageCosts {
 public:
  // `node_s`: seconds of each node of `micro` for one micro batch.  Both graphs must outlive it.
  StageCosts(const Graph& micro, const Graph& update, const StepPlaces& places,
             const std::vector<double>& node_s);

  int positions() const { return places_.positions; }
  // Forward and backward of a micro batch.
  double Seconds(int begin, int end) const;
  // Parameters, sums of gradients, optimizer states.
  int64_t StateBytes(int begin, int end) const;
  // What [begin, end) for each end, in one walk, keeps of a micro batch until its backward; by end.
  std::vector<int64_t> KeptBytes(int begin) const;
  // What crosses the border before a position: activations, gradients.
  int64_t ForwardBytes(int border) const { return forward_[static_cast<size_t>(border)]; }
  int64_t BackwardBytes(int border) const { return backward_[static_cast<size_t>(border)]; }
  // "": the border can be cut; else the variable that is read on both sides and updated.
  const std::string& SharedAt(int border) const { return shared_[static_cast<size_t>(border)]; }

 private:
  // A value that a stage with this position keeps, unless it has the earlier one too.
  struct Kept {
    int64_t bytes = 0;
    int earlier = -1;
  };

  void AddNodes(const std::vector<double>& node_s);
  void AddVariables();
  void AddCrossing(ValueId id, const std::vector<Place>& readers);
  void AddKept(const std::vector<std::vector<Place>>& readers);
  void ForbidBorders();

  const Graph& micro_;
  const Graph& update_;
  const StepPlaces& places_;
  std::vector<double> seconds_;          // of the positions before
  std::vector<int64_t> state_;           // likewise
  std::vector<std::vector<Kept>> kept_;  // by position
  std::vector<int64_t> forward_, backward_;
  std::vector<std::string> shared_;
};

struct CutRequest {
  int chunks = 2;
  // Both by chunk: micro batches that it keeps at once, and the bytes that it may take for its
  // state and what it keeps.
  std::vector<int64_t> kept_micros;
  std::vector<int64_t> limit_bytes = {};  // empty: any
};

// The borders of the chunks but the first: increasing positions.  The largest chunk's seconds are
// the least that are possible within the limit; among cuts at most 5 % worse the one that sends the
// fewest bytes, of these the first.
//
// Fails with kInvalidArgument when there are fewer positions than chunks, with kUnsupported when an
// updated variable is read on both sides of every border (tied weights), and with kOutOfMemory.
Result<std::vector<int>> ChooseCuts(const StageCosts& costs, const CutRequest& request);

}  // namespace ridge
