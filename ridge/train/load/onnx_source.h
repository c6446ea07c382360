// LoadOnnx: an ONNX file -> forward Graph, its dimensions bound to the batch and the data.
#pragma once
#include <string>

#include "ridge/train/load/model_source.h"

namespace ridge {

// Extents of open dimensions come from request.dims first, then from request.arrays.  In training
// the first dimension of each input is the batch, and the others are those of the matching field of
// the data: by name, else the only field of fitting shape.
// Fails with kInvalidArgument: a dimension without an extent or with two different ones (the
// message names dimension, input and --dim), a file that has another fixed batch.
Result<Graph> LoadOnnx(const std::string& path, const ModelRequest& request, ModelNotes* notes);

// Copies the file to RUN/model.onnx, with its external files (notes.external_files).  No hard
// links: a program may overwrite the original in place.
Status KeepOnnx(const std::string& path, const ModelNotes& notes, const std::string& run_folder);

}  // namespace ridge
