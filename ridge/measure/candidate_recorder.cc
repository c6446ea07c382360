#include "ridge/measure/candidate_recorder.h"

#include <fmt/format.h>

namespace ridge {

KernelCandidates CandidateRecorder::Candidates(const OpDef& op, const OpCall& call,
                                               std::span<const LayoutId> available) {
  KernelCandidates candidates = inner_.Candidates(op, call, available);
  Record({&op, call, candidates.choices});
  return candidates;
}

KernelChoice CandidateRecorder::Reorder(const TensorType& type, LayoutId from, LayoutId to) {
  KernelChoice choice = inner_.Reorder(type, from, to);
  OpCall call;
  call.where = fmt::format("reorder of {}", TypeToString(type));
  call.inputs = call.outputs = {type};
  Record({nullptr, std::move(call), {choice}});
  return choice;
}

void CandidateRecorder::Record(RecordedCandidates candidates) {
  std::string keys;
  for (const KernelChoice& choice : candidates.choices) keys += choice.key + "\n";
  recorded_.try_emplace(std::move(keys), std::move(candidates));
}

}  // namespace ridge
