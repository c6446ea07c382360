#include "ridge/data/text_source.h"

#include <fmt/format.h>

#include <algorithm>

namespace ridge {
namespace {

enum TextField : int { kIds, kMask, kTypes, kLabel };

std::vector<Field> FieldsOf(const TextLayout& layout, int64_t vocab, int64_t classes) {
  const TensorType tokens{DType::kI64, {layout.length}};
  if (layout.language) return {{"input_ids", tokens, vocab}, {"label", tokens, vocab}};
  std::vector<Field> fields = {
      {"input_ids", tokens, vocab}, {"attention_mask", tokens, 2}, {"token_type_ids", tokens, 1}};
  if (layout.labeled) fields.push_back({"label", {DType::kI64, {}}, classes});
  return fields;
}

}  // namespace

int64_t TokenizedText::bytes() const {
  size_t bytes = ids.capacity() * sizeof(uint32_t) + samples.capacity() * sizeof(TextSample) +
                 files.capacity() * sizeof(std::string);
  for (const std::string& file : files) bytes += file.capacity();
  return static_cast<int64_t>(bytes);
}

std::vector<int32_t> TokenizedText::Lengths() const {
  std::vector<int32_t> lengths;
  lengths.reserve(samples.size());
  for (const TextSample& sample : samples) lengths.push_back(sample.tokens);
  return lengths;
}

TextSource::TextSource(std::string name, const TextLayout& layout, int64_t vocab, int64_t classes,
                       TokenizedText text)
    : Source(std::move(name), FieldsOf(layout, vocab, classes),
             static_cast<int64_t>(text.samples.size())),
      layout_(layout),
      text_(std::move(text)) {}

Status TextSource::Read(SampleAt at, int field, std::span<char>, void* out) const {
  const TextSample& sample = text_.samples[static_cast<size_t>(at.index)];
  auto* values = static_cast<int64_t*>(out);
  const uint32_t* ids = text_.ids.data() + sample.begin;
  if (layout_.language) {
    std::copy_n(ids + field, layout_.length, values);
    return Status();
  }
  if (field == kLabel) {
    *values = sample.label;
    return Status();
  }
  const int64_t padding = layout_.length - sample.tokens;
  int64_t* tokens = layout_.pads_left ? values + padding : values;
  int64_t* rest = layout_.pads_left ? values : values + sample.tokens;
  std::fill_n(rest, padding, field == kIds ? int64_t{layout_.pad} : 0);
  if (field == kIds)
    std::copy_n(ids, sample.tokens, tokens);
  else
    std::fill_n(tokens, sample.tokens, int64_t{field == kMask});
  return Status();
}

std::string TextSource::Origin(int64_t index) const {
  const TextSample& sample = text_.samples[static_cast<size_t>(index)];
  return fmt::format("{}:{}", text_.files[sample.file], sample.line);
}

}  // namespace ridge
