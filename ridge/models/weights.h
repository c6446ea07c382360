// Weights: starting values of a model from a safetensors file, under the names of public models.
//
// What a file calls a tensor differs from library to library, and now and then how it lies in
// memory.  A model's WeightNames (models/weights/, one file a family) say so, as data; everything
// else is here.  Numbers of large tensors stay in the file until a run fills its arena, also those
// that are converted, joined or transposed on the way.
#pragma once
#include <string>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

enum class WeightForm {
  kSame,
  kTransposed,  // a matrix [in,out], as in Hugging Face's Conv1D
  kFirstRows,   // of a table that may be longer
};

// Where a tensor of ours comes from.  One * in `ours` is any text, and the same text in `theirs`.
struct WeightRule {
  std::string ours;                 // "blocks.*.qkv.weight"
  std::vector<std::string> theirs;  // several are joined along dimension 0
  WeightForm form = WeightForm::kSame;
};

// A tensor is looked for under our own name, then by the rules in order; each name also without
// `prefix`, if it begins so.
struct WeightNames {
  std::string prefix = {};  // "bert.": files of the bare model, without a head, leave it out
  std::vector<WeightRule> rules = {};
  std::vector<std::string> unused = {};  // patterns of tensors in public files that no model needs
};

struct WeightsReport {
  int64_t loaded = 0;               // tensors of ours
  std::vector<std::string> kept;    // ours that were skipped and keep their starting values
  std::vector<std::string> passed;  // the file's that were skipped
  std::vector<std::string> copies;  // "head.weight from transformer.wte.weight": read twice
};

// Every parameter and running statistic of the graph starts as the file's tensor.  Floats of
// another type are converted.  `skip`: patterns (* and ?) of names, ours or the file's, that are
// left out.
// Fails with kInvalidData: a file that can't be read, and tensors that are missing, not expected or
// of another shape, as a table; with kInvalidArgument when a pattern fits no name.
Result<WeightsReport> LoadWeightsFile(const std::string& path, const WeightNames& names,
                                      const std::vector<std::string>& skip, Graph& graph);

}  // namespace ridge
