// Tied weights: a parameter that is read at both ends of a model, such as the embedding that is the
// head too, becomes two, so that a pipeline can be cut between.
//
// The copy has a sum of gradients of its own; the update adds the two sums, changes the parameter,
// and the stage of the copy then gets it anew.  So a tied weight costs two transfers an update, and
// nothing a micro batch.
#pragma once
#include <string>
#include <vector>

#include "ridge/graph/graph.h"
#include "ridge/pipeline/step_places.h"

namespace ridge {

// `variable` holds what `of` holds, from the start and behind every update.
struct TiedCopy {
  std::string variable, of;

  bool operator==(const TiedCopy&) const = default;
};

struct UntiedStep {
  Graph micro, update;
  StepPlaces places;
  std::vector<TiedCopy> copies;
};

// Unties the parameters between whose readers lies at least half of the model; others stay.  The
// sum of gradients is rounded in another order than that of the tied step.  Fails as PlaceStep.
Result<UntiedStep> UntieWeights(Graph micro, Graph update);

}  // namespace ridge
