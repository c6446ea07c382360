// PackedText: a language model's texts, whole and side by side; a sample is a row of them.
//
// A text of n tokens takes n - 1 places: each has the next token as its label, so no label crosses
// a border.  position_ids begin at 0 in each text.  Behind the last text a row has padding, whose
// labels are ignored.
#pragma once
#include <string>
#include <vector>

#include "ridge/data/text_packing.h"
#include "ridge/data/text_source.h"

namespace ridge {

class PackedText : public Source {
 public:
  // The last `held_out` texts are in rows of their own.  REQUIRES: texts of 1 to layout.length
  // tokens, one more behind each; held_out below their number.
  static std::shared_ptr<const PackedText> Create(const std::string& name, const TextLayout& layout,
                                                  int64_t vocab, TokenizedText text,
                                                  int64_t held_out);

  int64_t held_out_rows() const;
  const TextLayout& layout() const { return layout_; }
  const TokenizedText& text() const { return text_; }

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override;
  std::string Origin(int64_t index) const override;
  std::string OriginAt(SampleAt at) const override;
  int64_t resident_bytes() const override;

 private:
  // Texts of one side of a split.
  struct Part {
    TextPacking packing;
    int64_t first_row = 0, first_text = 0;
  };
  struct Parts {
    std::vector<Part> parts;
    int64_t rows = 0;
  };
  static Parts Pack(const TextLayout& layout, const TokenizedText& text, int64_t held_out);
  PackedText(std::string name, const TextLayout& layout, int64_t vocab, TokenizedText text,
             Parts parts);
  const Part& PartOf(int64_t row) const;
  const TextSample& TextAt(SampleAt at, int64_t place) const;

  const TextLayout layout_;
  const TokenizedText text_;
  const std::vector<Part> parts_;
};

}  // namespace ridge
