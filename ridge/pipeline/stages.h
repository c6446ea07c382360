// Stages: a training step with gradients over micro batches, as graphs of the stages of a pipeline.
//
// A stage has for each micro batch a forward and a backward graph, and, where the schedule
// separates them, one for gradients of weights; and for each update one graph, or two with an
// exchange of numbers between them (the norm of all gradients).  Values keep the names that they
// have in the whole step: a graph reads what it needs by name, from the batch, from what the stage
// kept of the micro batch, or from what it received.
//
//   UntiedStep step = *UntieWeights(micro, update);
//   std::vector<PipelineStage> stages = *MakeStages(step, borders, separate_weights);
//
// Pure.  Every addition is one of the whole step, in its order, so the bits are those of the whole
// step with the same micro batches.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ridge/pipeline/step_places.h"
#include "ridge/pipeline/untie.h"

namespace ridge {

struct PipelineStage {
  int begin = 0, end = 0;  // positions

  Graph forward, backward;
  Graph weights;  // no nodes where `backward` has them

  // Of a micro batch, by name: what the next stage gets behind `forward`, what the previous one
  // gets behind `backward`, and what this one holds between them.
  std::vector<std::string> sends_forward, sends_backward, keeps;
  int64_t forward_bytes = 0, backward_bytes = 0;  // of what is sent

  // Outputs of the step that are made here: name, value.
  std::vector<std::pair<std::string, std::string>> results;

  // Of an update: `shares` are the outputs of `numbers`, and every stage's `update` may read those
  // of all.
  Graph numbers, update;
  std::vector<std::string> shares;

  std::vector<TiedCopy> copies;  // variables of this stage that it gets behind every update
};

// `borders`: increasing positions, where all stages but the first begin.
// Fails with kUnsupported when an updated variable is read or written in two stages, and when the
// update needs two exchanges.
Result<std::vector<PipelineStage>> MakeStages(const UntiedStep& step,
                                              const std::vector<int>& borders,
                                              bool separate_weights);

// The stage of a position.
int StageOf(int position, const std::vector<int>& borders);

}  // namespace ridge
