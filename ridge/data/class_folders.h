// ClassFolders: files in folders, DIR/class/*.suffix, as pictures and sounds lie there.
//
// Each folder of DIR is a class, in the order of the names' bytes; files may lie deeper below it.
// Suffixes are compared without case, hidden files and folders are left out, so are files with
// other suffixes, which a note tells.  A DIR whose folders are train, and maybe val and test, holds
// a set in each, all with the same classes.
//
// A pattern in place of DIR, DIR/*/a*.suffix (container/file_list.h), names the files themselves;
// the class of each is the folder that it lies in.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/data/file_stamp.h"
#include "ridge/data/source.h"

namespace ridge {

// What the files are, for messages.
struct FileKind {
  const char* name;                         // "picture"
  const char* example;                      // "picture.jpg"
  std::vector<std::string_view> suffixes;   // ".jpg", in lower case
  std::string SuffixList() const;           // ".jpg, .jpeg"
  bool Has(const std::string& path) const;  // whether the name ends so
};

struct ClassFolders {
  std::string train, validation, test;  // folders of the sets; "" where there is none
  std::vector<std::string> folders;     // of `train`, each a class
  std::vector<std::string> classes;     // of the labels, in UTF-8
  // Of a pattern, which is `train`: the files by the folder that they lie in.
  std::map<std::string, std::vector<std::string>> matches;
  std::vector<std::string> other_matches;  // of other suffixes
};

// Fails with kInvalidData; `spec` begins the message.  With options.preprocessing its classes are
// those of the labels, and each folder is one of them.
Result<ClassFolders> FindClassFolders(const FileKind& kind, const std::string& spec,
                                      const std::string& folder, const DataOptions& options);

// "DIR/" -> "DIR"
std::string WithoutSlash(std::string folder);

Field LabelField(const ClassFolders& folders);
std::vector<ModelSize> ClassSizes(const ClassFolders& folders);

// Gives each file of a set to `add`, in the order of classes and paths; `others` are those of other
// suffixes.  A file that `add` calls bad is skipped where options.bad_records says so.  Fails as
// `add`, and with kInvalidData for a class without files.
using AddClassFile = std::function<Status(const std::string& path, int64_t label)>;
Status WalkClassFiles(const FileKind& kind, const std::string& spec, const ClassFolders& folders,
                      const std::string& set, const DataOptions& options, const AddClassFile& add,
                      std::vector<std::string>& others);

// Opens the sets that there are, each by `open`, and checks that all have the same classes; a note
// tells of files that are left out.
using OpenClassSet =
    std::function<Result<SourcePtr>(const std::string& set, std::vector<std::string>& others)>;
Result<DataSplits> OpenClassSets(const FileKind& kind, const std::string& spec,
                                 const ClassFolders& folders, const OpenClassSet& open);

// All files of the kind below a folder, by the bytes of their paths.  Fails with kInvalidData when
// there is none.
Result<std::vector<std::string>> FindFiles(const FileKind& kind, const std::string& folder);

// Whether a folder of the folder holds a file of the kind.
bool HoldsClassFiles(const FileKind& kind, const std::string& folder);

// The paths, stamps and labels of many files: one text of all paths and an entry a file, so that a
// million files take tens of megabytes.
class FileIndex {
 public:
  void Add(const std::string& path, const FileStamp& stamp, int64_t label);
  void ShrinkToFit();

  int64_t size() const { return static_cast<int64_t>(files_.size()); }
  std::string Path(int64_t file) const;
  const FileStamp& stamp(int64_t file) const { return files_[static_cast<size_t>(file)].stamp; }
  int64_t file_bytes(int64_t file) const { return stamp(file).bytes; }
  int64_t label(int64_t file) const { return files_[static_cast<size_t>(file)].label; }
  int64_t most_file_bytes() const { return most_file_bytes_; }
  int64_t resident_bytes() const;

 private:
  struct File {
    int64_t path_end = 0;  // in the text of all paths; it begins where the one before ends
    FileStamp stamp;
    int64_t label = 0;
  };
  std::string paths_;
  std::vector<File> files_;
  int64_t most_file_bytes_ = 0;
};

}  // namespace ridge
