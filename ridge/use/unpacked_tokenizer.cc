#include "ridge/use/unpacked_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ridge/core/files.h"

namespace ridge {

Result<std::unique_ptr<UnpackedTokenizer>> UnpackedTokenizer::Write(const Signature& signature) {
  RIDGE_ASSIGN_OR_RETURN(ScratchFolder folder, ScratchFolder::Make("tokenizer"));
  std::unique_ptr<UnpackedTokenizer> unpacked(new UnpackedTokenizer(std::move(folder)));
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
    unpacked->paths_.push_back(unpacked->folder_.path() + "/" + name);
    RIDGE_RETURN_IF_ERROR(WriteFileAtomically(unpacked->paths_.back(), file->bytes));
  }
  return unpacked;
}

}  // namespace ridge
