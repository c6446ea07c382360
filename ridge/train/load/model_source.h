// LoadModel: the user's MODEL argument -> forward Graph with its batch bound.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ridge/data/memory_source.h"
#include "ridge/graph/graph.h"
#include "ridge/graph/trainable.h"

namespace ridge {

struct ModelRequest {
  std::string model;  // a built-in spec, FILE.onnx, FILE.ridge, a run or a public model's folder
  int64_t batch = 32;
  DType dtype = DType::kF32;                 // of built-in models
  std::map<std::string, int64_t> dims = {};  // further named dimensions (`--dim NAME=N`)

  // A safetensors file with initial parameters and statistics, under the names of a built-in
  // model's public files or of the graph; patterns of names to skip.
  std::string weights = {};
  std::vector<std::string> weights_skip = {};

  TrainablePatterns trained = {};  // a run has its own

  // Of ONNX files.
  // The training form (dropout drops, batch norm uses the batch), else the file's own form.
  bool training = true;
  bool batch_norm_frozen = false;
  bool use_file_optimizer =
      false;  // use the file's training step (TrainingInfoProto), if it has one
  // Every float initializer is a parameter; of any model, all are trained (`ridge grad`).
  bool all_parameters = false;
  std::vector<ModelSize> sizes = {};     // of the data: parameters of a built-in model
  std::vector<ModelSize> of_run = {};    // the same of a run, instead of what its data gave
  std::vector<Field> fields = {};        // of the data: they determine open dimensions
  std::vector<NamedTensor> arrays = {};  // given inputs: they determine all dimensions; `batch` is
                                         // ignored
};

// Notes for the user about the loaded model.
struct ModelNotes {
  std::vector<std::string> fixed;      // parameters that are not trained
  std::vector<std::string> notes;      // one sentence each
  std::vector<std::string> drawn;      // parameters that --weights leaves at random; a sentence
  std::vector<std::string> unreached;  // parameters without a gradient, and why; a sentence each
  std::vector<std::string> known;      // arrays that only determine shapes: no inputs of the graph
  std::vector<std::string>
      data_dims;                    // "NAME=N": dimensions or parameters that the data determined
  bool file_has_optimizer = false;  // the graph is the file's own training step
  std::optional<double> own_rate;   // ... with this learning rate, if that is one fixed number
  std::vector<std::string> external_files;  // files beside an ONNX file that hold its tensors
};

// In a text graph the named dimension `batch` becomes request.batch; without one, the inputs' first
// extent must be request.batch already.
// Fails with kInvalidModel or kInvalidData (a missing file).
Result<Graph> LoadModel(const ModelRequest& request, ModelNotes* notes = nullptr);

// The ONNX file that the model is, or that a run holds; "" for other models.  Fails with
// kInvalidData when the run cannot be opened.
Result<std::string> OnnxFileOf(const std::string& model);
// Fails with kInvalidModel when the file does not exist.
Status CheckModelFile(const std::string& path);

}  // namespace ridge
