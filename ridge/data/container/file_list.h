// The files that the pattern of a data spec names, and the sets that they make.
#pragma once
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

// {000..012} counts (with the zeros of its first number), {a,b} lists; both as WebDataset and
// shells expand them.  Fails with kInvalidArgument above 2^20 texts.
Result<std::vector<std::string>> ExpandBraces(const std::string& text);

// The files of a pattern, sorted by the bytes of their paths, each once.  After the braces, * and ?
// match within a folder's or a file's name, but no leading dot.  A file of just that name comes
// first.  `spec` is for messages.  Fails with kInvalidData when there is none.
Result<std::vector<std::string>> FindFiles(const std::string& spec, const std::string& pattern);

struct FileSets {
  std::vector<std::string> train, validation, test;
};

// By the words of a file's name, else of its folder's: train, val, valid, validation, test.  All
// files are training files when none says so, or all say the same.  Fails with kInvalidData when
// only some do, or none is of training.
Result<FileSets> SplitFiles(const std::string& spec, const std::vector<std::string>& files);

}  // namespace ridge
