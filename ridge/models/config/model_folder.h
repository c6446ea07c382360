// ModelFolder: a public model as Hugging Face keeps it, as options of ours.
//
// FOLDER, with config.json, model.safetensors and a tokenizer, is the trained model; the path of a
// config.json alone is its architecture with random values.  Both take arguments as a built-in
// model does: FOLDER:classes=7,pooling=mean.
//
// A folder only stands for what a user could have written: a built-in model's spec, --weights,
// --weights-skip and the data's tokenizer.  So a run keeps those and needs the folder no more.
#pragma once
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

struct ModelFolder {
  std::string spec;     // "bert:vocab=30522,hidden=384"
  std::string weights;  // "": a config.json was named
  std::vector<std::string> weights_skip;
  std::string tokenizer;           // the folder, if it holds a tokenizer; else ""
  std::vector<std::string> notes;  // what differs from the public implementation; sentences
};

// Whether `model` names such a folder or file; looks at names alone.
bool IsModelFolder(const std::string& model);

// `weights`: a file instead of the folder's own, or "".
// Fails with kInvalidData and kInvalidModel for files, with kUnsupported for what our model of the
// family lacks; the message names file, key and value.
Result<ModelFolder> OpenModelFolder(const std::string& model, const std::string& weights = "");

}  // namespace ridge
