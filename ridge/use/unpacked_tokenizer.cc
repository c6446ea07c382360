#include "ridge/use/unpacked_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "ridge/core/files.h"

namespace ridge {

namespace fs = std::filesystem;

Result<std::unique_ptr<UnpackedTokenizer>> UnpackedTokenizer::Write(const Signature& signature) {
  std::error_code error;
  std::string folder = (fs::temp_directory_path(error) / "ridge-tokenizer-XXXXXX").string();
  if (error || ::mkdtemp(folder.data()) == nullptr) {
    return Status(
        ErrorCode::kUnavailable,
        fmt::format("{}: no folder can be made there. hint: TMPDIR names another", folder));
  }
  std::unique_ptr<UnpackedTokenizer> unpacked(new UnpackedTokenizer(folder));
  for (const std::string& name : signature.preprocessing.text->files) {
    const auto file =
        std::find_if(signature.tokenizer.begin(), signature.tokenizer.end(),
                     [&](const CarriedFile& carried) { return carried.name == name; });
    if (file == signature.tokenizer.end()) {
      return Status(ErrorCode::kInvalidModel,
                    fmt::format("{}: carries no {}, so how a text becomes its input is not known. "
                                "hint: export it from a run again",
                                kSignatureKey, name));
    }
    unpacked->paths_.push_back(folder + "/" + name);
    RIDGE_RETURN_IF_ERROR(WriteFileAtomically(unpacked->paths_.back(), file->bytes));
  }
  return unpacked;
}

UnpackedTokenizer::~UnpackedTokenizer() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace ridge
