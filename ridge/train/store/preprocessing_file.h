// preprocessing.json of a run: what its raw data went through (ridge/data/preprocessing.h).
#pragma once
#include <memory>
#include <string>

#include "ridge/core/status.h"
#include "ridge/data/preprocessing.h"
#include "ridge/train/store/run.h"

namespace ridge {

inline constexpr char kPreprocessingFile[] = "preprocessing.json";
inline constexpr char kTokenizerFolder[] = "tokenizer";  // copies of the tokenizer's files

// Numbers come back bit for bit.
std::string PreprocessingToJson(const Preprocessing& preprocessing);
// `file` is for messages.  Fails with kInvalidData.
Result<Preprocessing> PreprocessingFromJson(const std::string& text, const std::string& file);

// Into a run folder, with copies of the tokenizer's files.
Status WritePreprocessing(const std::string& folder, const Preprocessing& preprocessing);

// Null when the run keeps none: its data are read as they are.
Result<std::shared_ptr<const Preprocessing>> PreprocessingOf(const Run& run);

}  // namespace ridge
