// Virtual stages: the judge of pipelines.
//
// Runs the stages of a training step in one process under a schedule, each device with its own
// variables and what it keeps; messages are copies.  Everything is computed by the operators'
// references in f64, whatever the dtypes.  For tests: slow.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/graph/numbers.h"
#include "ridge/pipeline/schedule.h"
#include "ridge/pipeline/stages.h"

namespace ridge {

class VirtualStages {
 public:
  // Stage c is chunk c of the schedule.  Variables start as their Init says.
  static Result<VirtualStages> Create(std::vector<PipelineStage> stages,
                                      const PipelineSchedule& schedule, uint64_t seed = 0);

  // One update.  `inputs`: of each micro batch, by name; `update_inputs`: of the update.  Gives the
  // outputs of the micro batches, in order, and then those of the update.  Fails with kInternal
  // when something is read that is not there, or when the schedule does not end.
  Result<std::vector<NamedNumbers>> Step(const std::vector<NamedNumbers>& inputs,
                                         const NamedNumbers& update_inputs);

  // All variables, by name.
  NamedNumbers Variables() const;

 private:
  VirtualStages(std::vector<PipelineStage> stages, const PipelineSchedule& schedule)
      : stages_(std::move(stages)), schedule_(schedule), variables_(stages_.size()) {}
  Status AddVariables(const Graph& graph, NamedNumbers& variables, uint64_t seed);
  // False: a receive whose message is not there.
  Result<bool> Run(const Operation& operation, const NamedNumbers& inputs);
  Status RunGraph(const Graph& graph, NamedNumbers& variables, const NamedNumbers& inputs,
                  NamedNumbers& values);
  Result<NamedNumbers> Update(const NamedNumbers& inputs);
  void CopyTied();
  NamedNumbers& Kept(const Operation& o) { return kept_[{o.chunk, o.micro}]; }

  std::vector<PipelineStage> stages_;
  PipelineSchedule schedule_;
  std::vector<NamedNumbers> variables_;               // by stage
  std::map<std::pair<int, int>, NamedNumbers> kept_;  // by stage and micro batch
  std::map<Operation, NamedNumbers> messages_;        // by send
};

}  // namespace ridge
