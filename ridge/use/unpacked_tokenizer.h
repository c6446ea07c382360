// UnpackedTokenizer: the tokenizer that an exported file carries, as files of this process.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ridge/use/signature.h"

namespace ridge {

// Removes its folder when it goes.
class UnpackedTokenizer {
 public:
  // Fails with kInvalidModel when a file that preprocessing.text names is not carried, with
  // kUnavailable when nothing can be written.
  static Result<std::unique_ptr<UnpackedTokenizer>> Write(const Signature& signature);
  ~UnpackedTokenizer();
  UnpackedTokenizer(const UnpackedTokenizer&) = delete;
  UnpackedTokenizer& operator=(const UnpackedTokenizer&) = delete;

  const std::vector<std::string>& paths() const { return paths_; }

 private:
  explicit UnpackedTokenizer(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  std::vector<std::string> paths_;
};

}  // namespace ridge
