// LoadModel: what the user calls a model -> forward Graph with its batch bound.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ridge/data/memory_source.h"
#include "ridge/graph/graph.h"

namespace ridge {

struct ModelRequest {
  std::string model;  // a built-in spec, FILE.onnx, FILE.ridge, or a run folder
  int64_t batch = 32;
  DType dtype = DType::kF32;                 // of built-in models
  std::map<std::string, int64_t> dims = {};  // further named dimensions (`--dim NAME=N`)

  // A safetensors file that the parameters and statistics start from, under the names of public
  // files of a built-in model, or the graph's own; patterns of names that are left out.
  std::string weights = {};
  std::vector<std::string> weights_skip = {};

  // Of ONNX files.
  // The form that learns (dropout drops, batch norm uses the batch), else the file's own.
  bool training = true;
  bool batch_norm_frozen = false;
  bool own_step = false;  // the training step that the file carries (TrainingInfoProto), if it does
  bool all_parameters = false;  // every float initializer is one (`ridge grad`)
  std::vector<std::string> freeze = {}, trainable = {};  // patterns of initializers' names
  std::vector<Field> fields = {};        // of the data: they size dimensions that are still open
  std::vector<NamedTensor> arrays = {};  // given inputs: all dimensions come from them, and batch
                                         // says nothing
};

// What a user should know of the model that was loaded.
struct ModelNotes {
  std::vector<std::string> fixed;      // parameters that are not trained
  std::vector<std::string> notes;      // one sentence each
  std::vector<std::string> unreached;  // parameters without a gradient, and why; a sentence each
  std::vector<std::string> known;      // arrays that only decide shapes: no inputs of the graph
  std::vector<std::string> data_dims;  // "NAME=N": dimensions that the data gave
  bool own_step = false;               // the graph is the file's own training step
  std::optional<double> own_rate;      // ... with this learning rate, if that is one fixed number
  std::vector<std::string> external_files;  // beside an ONNX file, which holds some tensors there
};

// In a text graph the named dimension `batch` becomes request.batch; without one, the inputs' first
// extent must be request.batch already.
// Fails with kInvalidModel or kInvalidData (a missing file).
Result<Graph> LoadModel(const ModelRequest& request, ModelNotes* notes = nullptr);

// Whether the spec names a text graph, and so must be kept with a run.
bool IsGraphFile(const std::string& model);
bool IsOnnxFile(const std::string& model);
// Whether it is the folder of a run of an ONNX file.
bool HoldsOnnx(const std::string& run);
// Whether the file is there.  Fails with kInvalidModel.
Status CheckModelFile(const std::string& path);

}  // namespace ridge
