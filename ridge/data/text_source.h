// TextSource: tokenized text in memory; a sample is a range of tokens.
#pragma once
#include <string>
#include <vector>

#include "ridge/data/source.h"

namespace ridge {

struct TextSample {
  int64_t begin = 0;   // its first token
  int32_t tokens = 0;  // of a language model: the length, and one more follows
  int32_t label = 0;
  uint32_t file = 0, line = 0;
};

struct TokenizedText {
  std::vector<uint32_t> ids;
  std::vector<TextSample> samples;
  std::vector<std::string> files;

  int64_t bytes() const;
  std::vector<int32_t> Lengths() const;
};

struct TextLayout {
  bool language = false;  // fields input_ids, label; else input_ids, attention_mask, token_type_ids
  bool labeled = false;   // ... and label
  int64_t length = 0;     // tokens of a sample
  uint32_t pad = 0;
  bool pads_left = false;
  bool packed = false;  // of a language model: its texts stay whole (packed_text.h)
  uint64_t seed = 0;    // of the packed rows
};

class TextSource : public Source {
 public:
  // `classes` of the field label; 0 for a language model, whose labels are tokens below `vocab`.
  TextSource(std::string name, const TextLayout& layout, int64_t vocab, int64_t classes,
             TokenizedText text);

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override;
  std::string Origin(int64_t index) const override;
  const TextLayout& layout() const { return layout_; }
  const TokenizedText& text() const { return text_; }
  int64_t resident_bytes() const override { return text_.bytes(); }

 private:
  const TextLayout layout_;
  const TokenizedText text_;
};

}  // namespace ridge
