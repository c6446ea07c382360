#include "ridge/train/load/folder_options.h"

#include "ridge/data/spec_options.h"
#include "ridge/models/config/model_folder.h"
#include "ridge/train/store/run.h"

namespace ridge {
namespace {

// "text:DIR" -> "text:DIR,tokenizer=FOLDER".
void GiveTokenizer(const std::string& folder, std::string& spec) {
  if (folder.empty() || !(spec.starts_with("text:") || spec.starts_with("jsonl:"))) return;
  for (const auto& [key, value] : SplitSpecOptions(spec.substr(spec.find(':') + 1)).options) {
    if (key == "tokenizer") return;
  }
  spec += ",tokenizer=" + folder;
}

}  // namespace

Status TakeModelFolder(TrainOptions& options, std::vector<std::string>* notes) {
  if (Run::Exists(options.model) || !IsModelFolder(options.model)) return Status();
  RIDGE_ASSIGN_OR_RETURN(ModelFolder folder, OpenModelFolder(options.model, options.weights));
  options.model = std::move(folder.spec);
  options.weights = std::move(folder.weights);
  options.weights_skip.insert(options.weights_skip.end(), folder.weights_skip.begin(),
                              folder.weights_skip.end());
  GiveTokenizer(folder.tokenizer, options.data);
  GiveTokenizer(folder.tokenizer, options.validation);
  if (notes != nullptr) notes->insert(notes->end(), folder.notes.begin(), folder.notes.end());
  return Status();
}

}  // namespace ridge
