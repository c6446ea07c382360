// UnpackedTokenizer: the tokenizer that an exported file carries, as files of this process.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ridge/core/scratch_folder.h"
#include "ridge/use/signature.h"

namespace ridge {

// Its files are gone with it.
class UnpackedTokenizer {
 public:
  // Fails with kInvalidModel when a file that preprocessing.text names is not carried, with
  // kUnavailable when nothing can be written.
  static Result<std::unique_ptr<UnpackedTokenizer>> Write(const Signature& signature);

  const std::vector<std::string>& paths() const { return paths_; }

 private:
  explicit UnpackedTokenizer(ScratchFolder folder) : folder_(std::move(folder)) {}

  const ScratchFolder folder_;
  std::vector<std::string> paths_;
};

}  // namespace ridge
