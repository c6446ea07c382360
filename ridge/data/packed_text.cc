#include "ridge/data/packed_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace ridge {
namespace {

enum PackedField : int { kIds, kLabel, kPositions };

std::vector<Field> FieldsOf(const TextLayout& layout, int64_t vocab) {
  const TensorType tokens{DType::kI64, {layout.length}};
  return {{"input_ids", tokens, vocab},
          {"label", tokens, vocab},
          {"position_ids", tokens, layout.length}};
}

std::vector<int32_t> LengthsOf(std::span<const TextSample> texts) {
  std::vector<int32_t> lengths;
  lengths.reserve(texts.size());
  for (const TextSample& text : texts) lengths.push_back(text.tokens);
  return lengths;
}

}  // namespace

PackedText::Parts PackedText::Pack(const TextLayout& layout, const TokenizedText& text,
                                   int64_t held_out) {
  const std::span<const TextSample> all = text.samples;
  const size_t kept = all.size() - static_cast<size_t>(held_out);
  Parts parts;
  for (const auto& [first, count] : {std::pair{size_t{0}, kept}, {kept, all.size() - kept}}) {
    if (count == 0) continue;
    parts.parts.push_back(
        {TextPacking(LengthsOf(all.subspan(first, count)), layout.length, layout.seed), parts.rows,
         static_cast<int64_t>(first)});
    parts.rows += parts.parts.back().packing.rows();
  }
  return parts;
}

std::shared_ptr<const PackedText> PackedText::Create(const std::string& name,
                                                     const TextLayout& layout, int64_t vocab,
                                                     TokenizedText text, int64_t held_out) {
  Parts parts = Pack(layout, text, held_out);
  return std::shared_ptr<const PackedText>(
      new PackedText(name, layout, vocab, std::move(text), std::move(parts)));
}

PackedText::PackedText(std::string name, const TextLayout& layout, int64_t vocab,
                       TokenizedText text, Parts parts)
    : Source(std::move(name), FieldsOf(layout, vocab), parts.rows),
      layout_(layout),
      text_(std::move(text)),
      parts_(std::move(parts.parts)) {}

int64_t PackedText::held_out_rows() const {
  return parts_.size() > 1 ? parts_.back().packing.rows() : 0;
}

const PackedText::Part& PackedText::PartOf(int64_t row) const {
  return row < parts_.back().first_row ? parts_.front() : parts_.back();
}

const TextSample& PackedText::TextAt(SampleAt at, int64_t place) const {
  const Part& part = PartOf(at.index);
  const int64_t text = part.packing.TextAt(at.index - part.first_row, place, at.epoch);
  return text_.samples[static_cast<size_t>(part.first_text + text)];
}

Status PackedText::Read(SampleAt at, int field, std::span<char>, void* out) const {
  const Part& part = PartOf(at.index);
  auto* to = static_cast<int64_t*>(out);
  int64_t* const end = to + layout_.length;
  for (int64_t place = 0; place < part.packing.TextsOf(at.index - part.first_row); ++place) {
    const TextSample& text = TextAt(at, place);
    if (field == kPositions)
      std::iota(to, to + text.tokens, int64_t{0});
    else
      std::copy_n(text_.ids.data() + text.begin + field, text.tokens, to);
    to += text.tokens;
  }
  if (field == kPositions)
    std::iota(to, end, int64_t{0});
  else
    std::fill(to, end, field == kIds ? int64_t{layout_.pad} : kIgnoredLabel);
  return Status();
}

std::string PackedText::Origin(int64_t index) const {
  return fmt::format("{}[row {}]", name(), index);
}

std::string PackedText::OriginAt(SampleAt at) const {
  const TextSample& text = TextAt(at, 0);
  return fmt::format("{}:{}", text_.files[text.file], text.line);
}

int64_t PackedText::resident_bytes() const {
  int64_t bytes = text_.bytes();
  for (const Part& part : parts_) bytes += part.packing.bytes();
  return bytes;
}

}  // namespace ridge
