// Vocabulary: pieces of text and their ids.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ridge {

using TokenId = int32_t;

class Vocabulary {
 public:
  // Of several equal pieces the last counts.
  void Add(std::string_view piece, TokenId id) {
    size_ = std::max<int64_t>(size_, int64_t{id} + 1);
    longest_ = std::max(longest_, piece.size());
    ids_.insert_or_assign(std::string(piece), id);
  }
  std::optional<TokenId> Find(std::string_view piece) const {
    const auto found = ids_.find(piece);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  int64_t size() const { return size_; }       // the largest id + 1
  size_t longest() const { return longest_; }  // bytes of a piece

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, TokenId, Hash, std::equal_to<>> ids_;
  int64_t size_ = 0;
  size_t longest_ = 0;
};

}  // namespace ridge
