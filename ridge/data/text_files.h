// TextFiles: which files a `text:` spec names, in which set, and of which class.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ridge/data/text_options.h"

namespace ridge {

struct TextFile {
  std::string path;
  std::string of_class;
};

// Each in the order of the paths' bytes.  Without a validation or a test set, that one is empty.
struct TextFileSets {
  std::vector<TextFile> train, validation, test;
  std::vector<std::string> notes;
};

// A file, a pattern with * ? [...], or a folder with all that lies below it; a folder that holds
// `train`, and maybe `val` and `test`, has a set in each.  Of patterns and folders hidden files,
// files with a zero byte, and further links to one file are left out; a note tells.
// The class is the file's name without .txt, or the name of the folder: by options.label, which is
// `folder` where the folder holds folders and `file` else.
// Fails with kInvalidData when there is none.
Result<TextFileSets> FindTextFiles(const std::string& spec, const TextOptions& options);

// The names of the training files' classes, by bytes, made UTF-8.
std::vector<std::string> ClassesOf(const std::vector<TextFile>& files);

}  // namespace ridge
