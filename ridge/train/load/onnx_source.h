// LoadOnnx: an ONNX file -> forward Graph, its dimensions bound to the batch and the data.
#pragma once
#include <string>

#include "ridge/train/load/model_source.h"

namespace ridge {

// Extents of open dimensions: request.dims first; then, with request.arrays, theirs.  In training
// the first dimension of each input is the batch, and the others are those of the field of data
// that fits the input: of its name, else the only one of its shape.
// Fails with kInvalidArgument: a dimension that nothing sizes or that two inputs size differently
// (the message names dimension, input and --dim), a file that is written for another batch.
Result<Graph> LoadOnnx(const std::string& path, const ModelRequest& request, ModelNotes* notes);

// Copies the file to RUN/model.onnx, and what it keeps in files beside it (notes.external_files).
// A copy, because who writes the original anew may write into the file that is there.
Status KeepOnnx(const std::string& path, const ModelNotes& notes, const std::string& run_folder);

}  // namespace ridge
