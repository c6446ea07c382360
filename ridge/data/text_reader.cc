#include "ridge/data/text_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ridge/data/content_split.h"
#include "ridge/data/packed_text.h"

namespace ridge {
namespace {

Status BadData(const std::string& where, const std::string& what) {
  return Status(ErrorCode::kInvalidData, where + ": " + what);
}

}  // namespace

void TextReader::Add(const TextRecord& record, int32_t label) {
  std::vector<TokenId> ids;
  if (layout_.language) {
    tokenizer_.Encode(record.text, ids);
    if (tokenizer_.end() >= 0) ids.push_back(tokenizer_.end());
  } else {
    ids = tokenizer_.EncodeFramed(record.text, layout_.length);
  }
  if (!layout_.language || layout_.packed) {
    ContentHash hash;
    hash.Add(record.text);
    hashes_.push_back(hash.value());
  }
  constexpr int64_t kMostLine = std::numeric_limits<uint32_t>::max();
  read_.samples.push_back({static_cast<int64_t>(read_.ids.size()), static_cast<int32_t>(ids.size()),
                           label, static_cast<uint32_t>(read_.files.size() - 1),
                           static_cast<uint32_t>(std::min(record.line, kMostLine))});
  read_.ids.insert(read_.ids.end(), ids.begin(), ids.end());
}

void TextReader::SetLabels(const std::vector<int64_t>& labels) {
  for (size_t i = 0; i < labels.size(); ++i)
    read_.samples[i].label = static_cast<int32_t>(labels[i]);
}

Status TextReader::Finish(const std::string& name) {
  if (!layout_.language) return read_.samples.empty() ? BadData(name, "holds no text") : Status();
  if (layout_.packed) return CutTexts(name);
  const auto tokens = static_cast<int64_t>(read_.ids.size());
  std::vector<TextSample> blocks;
  for (int64_t begin = 0; begin + layout_.length < tokens; begin += layout_.length) {
    TextSample block = RecordAt(begin);
    block.begin = begin;
    block.tokens = static_cast<int32_t>(layout_.length);
    blocks.push_back(block);
    hashes_.push_back(HashOfBlock(begin));
  }
  if (blocks.empty()) {
    return BadData(name, fmt::format("has {} tokens; one sample of the model takes {}", tokens,
                                     layout_.length + 1));
  }
  read_.samples = std::move(blocks);
  return Status();
}

// A text of n tokens has n - 1 that another one follows.
Status TextReader::CutTexts(const std::string& name) {
  std::vector<TextSample> pieces;
  std::vector<uint64_t> hashes;
  for (size_t i = 0; i < read_.samples.size(); ++i) {
    TextSample piece = read_.samples[i];
    int64_t left = int64_t{piece.tokens} - 1;
    for (; left > 0; left -= layout_.length, piece.begin += layout_.length) {
      piece.tokens = static_cast<int32_t>(std::min(left, layout_.length));
      pieces.push_back(piece);
      hashes.push_back(hashes_[i]);
    }
  }
  if (pieces.empty()) return BadData(name, "has no text of two tokens");
  read_.samples = std::move(pieces);
  hashes_ = std::move(hashes);
  return Status();
}

// The record that token `begin` is of.
TextSample TextReader::RecordAt(int64_t begin) const {
  const auto after =
      std::upper_bound(read_.samples.begin(), read_.samples.end(), begin,
                       [](int64_t at, const TextSample& record) { return at < record.begin; });
  return *(after - 1);
}

uint64_t TextReader::HashOfBlock(int64_t begin) const {
  ContentHash hash;
  hash.Add({reinterpret_cast<const char*>(read_.ids.data() + begin),
            static_cast<size_t>(layout_.length) * sizeof(uint32_t)});
  return hash.value();
}

Result<int64_t> TextReader::HoldOut(const std::string& name, double fraction) {
  ContentSplit split(fraction);
  for (bool settled = false; !settled;) {
    split = split.Uncounted();
    for (const uint64_t hash : hashes_) split.Count(hash);
    RIDGE_ASSIGN_OR_RETURN(settled, split.Settle(name));
  }
  std::vector<TextSample> kept, held;
  for (size_t i = 0; i < hashes_.size(); ++i)
    (split.HoldsOut(hashes_[i]) ? held : kept).push_back(read_.samples[i]);
  kept.insert(kept.end(), held.begin(), held.end());
  read_.samples = std::move(kept);
  return split.held_out();
}

Result<TextReader::Texts> TextReader::Take(const std::string& name, double fraction) {
  Texts texts;
  if (fraction > 0) {
    RIDGE_ASSIGN_OR_RETURN(texts.held_out, HoldOut(name, fraction));
  }
  read_.ids.shrink_to_fit();
  read_.samples.shrink_to_fit();
  read_.files.shrink_to_fit();
  texts.all = std::move(read_);
  return texts;
}

Result<SampleSet> FinishTexts(const std::string& name, TextReader& reader, const TextLayout& layout,
                              int64_t vocab, int64_t classes, double hold_out) {
  RIDGE_RETURN_IF_ERROR(reader.Finish(name));
  RIDGE_ASSIGN_OR_RETURN(TextReader::Texts texts, reader.Take(name, hold_out));
  if (layout.packed) {
    const auto packed =
        PackedText::Create(name, layout, vocab, std::move(texts.all), texts.held_out);
    return SampleSet{packed, packed->held_out_rows()};
  }
  return SampleSet{std::make_shared<TextSource>(name, layout, vocab, classes, std::move(texts.all)),
                   texts.held_out};
}

}  // namespace ridge
