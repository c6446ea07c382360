// TokenModel: a word -> ids of its pieces.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "ridge/data/text/vocabulary.h"

namespace ridge {

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the ids of a word of valid UTF-8.  Thread-safe.
  virtual void Encode(std::string_view word, std::vector<TokenId>& ids) const = 0;
  virtual std::optional<TokenId> Find(std::string_view piece) const = 0;
  virtual int64_t size() const = 0;  // the largest id + 1
};

}  // namespace ridge
