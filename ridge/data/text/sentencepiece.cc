// After src/normalizer.cc, src/model_interface.cc and src/sentencepiece_processor.cc of the
// package: text is normalized as a whole, cut by the model, and unknown neighbours are joined.
#include "ridge/data/text/sentencepiece.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <unordered_map>

#include "ridge/data/text/charsmap.h"
#include "ridge/data/text/sentencepiece_bpe.h"
#include "ridge/data/text/unicode.h"
#include "ridge/data/text/unigram.h"
#include "ridge/data/text/wire.h"

namespace ridge {
namespace {

constexpr size_t kMostPieces = size_t{1} << 20;       // public models have up to 2^18
constexpr size_t kMostPieceBytes = size_t{16} << 20;  // of all pieces: a trie takes many times that
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

// ---- the file

// The numbers of ModelProto.SentencePiece.Type.
enum class PieceType : uint64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

struct FilePiece {
  std::string text;
  double score = 0;
  PieceType type = PieceType::kNormal;

  // Whether text may become it.
  bool IsOfText() const {
    return type == PieceType::kNormal || type == PieceType::kUserDefined ||
           type == PieceType::kUnused;
  }
};

struct ModelFile {
  std::vector<FilePiece> pieces;
  size_t piece_bytes = 0;
  uint64_t model_type = 1;  // TrainerSpec.ModelType: unigram 1, bpe 2, word 3, char 4
  bool byte_fallback = false;
  bool space_is_suffix = false;
  int64_t end = 2, pad = -1;
  std::string unknown_surface = " \xE2\x81\x87 ";
  std::string charsmap;
  bool adds_dummy_prefix = true, removes_extra_spaces = true, escapes_spaces = true;
};

Status BadAt(int64_t offset, const std::string& what) {
  return Status(ErrorCode::kInvalidData, fmt::format("byte {}: {}", offset, what));
}

// Calls take(field) for each field of a message; `offset` is its place in the file.
template <typename Take>
Status ForEachField(std::string_view message, int64_t offset, const Take& take) {
  WireReader reader(message, offset);
  while (!reader.AtEnd()) {
    const int64_t at = reader.offset();
    RIDGE_ASSIGN_OR_RETURN(const WireField field, reader.Next());
    RIDGE_RETURN_IF_ERROR(take(field, at));
  }
  return Status();
}

Status AddPiece(std::string_view message, int64_t offset, ModelFile& file) {
  FilePiece piece;
  RIDGE_RETURN_IF_ERROR(ForEachField(message, offset, [&](const WireField& field, int64_t) {
    if (field.number == 1) piece.text = field.bytes;
    if (field.number == 2) piece.score = field.AsFloat();
    if (field.number == 3) piece.type = static_cast<PieceType>(field.value);
    return Status();
  }));
  if (piece.text.empty()) return BadAt(offset, "a piece is empty");
  if (ToUtf8(piece.text) != piece.text) return BadAt(offset, "a piece is no UTF-8");
  if (!std::isfinite(piece.score)) return BadAt(offset, "the score of a piece is no number");
  file.piece_bytes += piece.text.size();
  if (file.pieces.size() == kMostPieces || file.piece_bytes > kMostPieceBytes) {
    return BadAt(offset, fmt::format("has more than {} pieces, or {} MiB of them", kMostPieces,
                                     kMostPieceBytes >> 20));
  }
  file.pieces.push_back(std::move(piece));
  return Status();
}

Status TakeTrainer(const WireField& field, ModelFile& file) {
  if (field.number == 3) file.model_type = field.value;
  if (field.number == 24) file.space_is_suffix = field.value != 0;
  if (field.number == 35) file.byte_fallback = field.value != 0;
  if (field.number == 42) file.end = static_cast<int32_t>(field.value);
  if (field.number == 43) file.pad = static_cast<int32_t>(field.value);
  if (field.number == 44) file.unknown_surface = field.bytes;
  return Status();
}

Status TakeNormalizer(const WireField& field, ModelFile& file) {
  if (field.number == 2) file.charsmap = field.bytes;
  if (field.number == 3) file.adds_dummy_prefix = field.value != 0;
  if (field.number == 4) file.removes_extra_spaces = field.value != 0;
  if (field.number == 5) file.escapes_spaces = field.value != 0;
  return Status();
}

Result<ModelFile> ReadModel(std::string_view bytes) {
  ModelFile file;
  RIDGE_RETURN_IF_ERROR(ForEachField(bytes, 0, [&](const WireField& field, int64_t at) {
    const int64_t content = field.bytes.data() == nullptr ? at : field.bytes.data() - bytes.data();
    if (field.number >= 1 && field.number <= 3 && field.type != WireField::kBytes)
      return BadAt(at, "a part of the model is no message");
    if (field.number == 1) return AddPiece(field.bytes, content, file);
    const auto take = field.number == 2 ? TakeTrainer : TakeNormalizer;
    if (field.number != 2 && field.number != 3) return Status();
    return ForEachField(field.bytes, content,
                        [&](const WireField& inner, int64_t) { return take(inner, file); });
  }));
  if (file.pieces.empty()) {
    return Status(ErrorCode::kInvalidData,
                  "has no pieces: is no model of SentencePiece. hint: tokenizer.json or vocab.txt");
  }
  return file;
}

// ---- normalization

struct NormalizerRules {
  Charsmap charsmap;
  std::shared_ptr<const PrefixMatcher> user_defined;
  bool dummy_prefix = true, removes_extra = true, suffix = false;
  std::string space = " ";
};

class SentencePieceNormalizer {
 public:
  explicit SentencePieceNormalizer(NormalizerRules rules) : rules_(std::move(rules)) {}

  void operator()(std::string& text) const {
    std::string_view rest = text;
    while (rules_.removes_extra && !rest.empty()) {
      std::string_view next = rest;
      if (TakePrefix(next) != " ") break;
      rest = next;
    }
    if (rest.empty()) {
      text.clear();
      return;
    }
    std::string out;
    if (rules_.dummy_prefix && !rules_.suffix) out += rules_.space;
    bool after_space = rules_.removes_extra;
    while (!rest.empty()) {
      std::string_view piece = TakePrefix(rest);
      while (after_space && piece.starts_with(' ')) piece.remove_prefix(1);
      for (const char byte : piece) {
        if (byte == ' ')
          out += rules_.space;
        else
          out += byte;
      }
      if (!piece.empty()) after_space = piece.ends_with(' ');
      if (!rules_.removes_extra) after_space = false;
    }
    while (rules_.removes_extra && out.ends_with(rules_.space))
      out.resize(out.size() - rules_.space.size());
    if (rules_.dummy_prefix && rules_.suffix) out += rules_.space;
    text = std::move(out);
  }

 private:
  // What the front of `rest` becomes; takes it off.
  std::string_view TakePrefix(std::string_view& rest) const {
    size_t length = rules_.user_defined->Match(rest);
    std::string_view result = rest.substr(0, length);
    if (length == 0) {
      const Charsmap::Rule rule = rules_.charsmap.Find(rest, /*longest=*/true);
      length = rule.length > 0 ? rule.length : std::min(CharBytes(rest.front()), rest.size());
      result = rule.length > 0 ? rule.replacement : rest.substr(0, length);
    }
    rest.remove_prefix(length);
    return result;
  }

  NormalizerRules rules_;
};

// ---- the model

// A model whose control and byte pieces are found by their names, although no text becomes them.
class NamedPieces final : public TokenModel {
 public:
  NamedPieces(std::unique_ptr<TokenModel> model, Vocabulary names)
      : model_(std::move(model)), names_(std::move(names)) {}

  void Encode(std::string_view word, std::vector<TokenId>& ids) const override {
    model_->Encode(word, ids);
  }
  std::optional<TokenId> Find(std::string_view piece) const override { return names_.Find(piece); }
  int64_t size() const override { return names_.size(); }

 private:
  std::unique_ptr<TokenModel> model_;
  Vocabulary names_;
};

struct PieceFacts {
  Vocabulary names;
  TokenId unknown = -1;
  std::vector<TokenId> bytes;
  std::vector<std::string> user_defined;
};

Status TakeFacts(const FilePiece& piece, TokenId id, bool byte_fallback, PieceFacts& facts) {
  const auto bad = [&](const std::string& what) {
    return Status(ErrorCode::kInvalidData, fmt::format("piece {} '{}' {}", id, piece.text, what));
  };
  if (facts.names.Find(piece.text)) return bad("is there twice");
  facts.names.Add(piece.text, id);
  if (piece.type == PieceType::kUserDefined) facts.user_defined.push_back(piece.text);
  if (piece.type == PieceType::kUnknown) {
    if (facts.unknown >= 0) return bad("is a second one for unknown text");
    facts.unknown = id;
  }
  if (piece.type == PieceType::kByte && !byte_fallback)
    return bad("is a byte, but byte_fallback is not set");
  if (piece.type < PieceType::kNormal || piece.type > PieceType::kByte)
    return bad(fmt::format("has type {}; known are 1 to 6", static_cast<uint64_t>(piece.type)));
  return Status();
}

Result<PieceFacts> FactsOf(const ModelFile& file) {
  PieceFacts facts;
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    RIDGE_RETURN_IF_ERROR(
        TakeFacts(file.pieces[id], static_cast<TokenId>(id), file.byte_fallback, facts));
  }
  if (facts.unknown < 0) return Status(ErrorCode::kInvalidData, "has no piece for unknown text");
  for (int byte = 0; file.byte_fallback && byte < 256; ++byte) {
    const std::string name = fmt::format("<0x{:02X}>", byte);
    const auto id = facts.names.Find(name);
    if (!id || file.pieces[static_cast<size_t>(*id)].type != PieceType::kByte)
      return Status(ErrorCode::kInvalidData, "byte_fallback is set, but it has no piece " + name);
    facts.bytes.push_back(*id);
  }
  return facts;
}

std::vector<ScoredPiece> ScoredPieces(const ModelFile& file) {
  std::vector<ScoredPiece> pieces;
  for (const FilePiece& piece : file.pieces) {
    pieces.push_back({piece.IsOfText() ? piece.text : "", piece.score,
                      piece.type == PieceType::kUserDefined, piece.type == PieceType::kUnused});
  }
  return pieces;
}

std::unique_ptr<TokenModel> MakeModel(const ModelFile& file, const PieceFacts& facts,
                                      std::shared_ptr<const PrefixMatcher> user_defined) {
  if (file.model_type == 2) {
    return MakeSentencePieceBpe(
        {ScoredPieces(file), facts.unknown, facts.bytes, std::move(user_defined)});
  }
  UnigramRules rules;
  rules.pieces = ScoredPieces(file);
  rules.unknown = facts.unknown;
  rules.bytes = facts.bytes;
  rules.single_precision = true;
  return MakeUnigram(std::move(rules));
}

PieceTable TableOf(const ModelFile& file) {
  PieceTable table;
  table.joining = Joining::kMetaspace;
  for (const FilePiece& piece : file.pieces) {
    const bool control = piece.type == PieceType::kControl;
    const bool unknown = piece.type == PieceType::kUnknown;
    table.pieces.push_back(control ? "" : unknown ? file.unknown_surface : piece.text);
  }
  return table;
}

Result<TokenizerParts> MakeParts(ModelFile file) {
  if (file.model_type != 1 && file.model_type != 2) {
    return Status(
        ErrorCode::kUnsupported,
        fmt::format("its model_type is {}; known are unigram (1) and bpe (2)", file.model_type));
  }
  RIDGE_ASSIGN_OR_RETURN(PieceFacts facts, FactsOf(file));
  const auto user_defined = std::make_shared<const PrefixMatcher>(facts.user_defined);
  NormalizerRules rules;
  RIDGE_ASSIGN_OR_RETURN(rules.charsmap, Charsmap::Parse("normalizer_spec", file.charsmap));
  rules.user_defined = user_defined;
  rules.dummy_prefix = file.adds_dummy_prefix;
  rules.removes_extra = file.removes_extra_spaces;
  rules.suffix = file.space_is_suffix;
  if (file.escapes_spaces) rules.space = kSpaceMark;

  TokenizerParts parts;
  parts.kind = "sentencepiece";
  parts.normalizers.emplace_back(SentencePieceNormalizer(std::move(rules)));
  parts.table = TableOf(file);
  parts.vocab = static_cast<int64_t>(file.pieces.size());
  const auto id = [&](int64_t given, TokenId missing) {
    return given >= 0 && given < parts.vocab ? static_cast<TokenId>(given) : missing;
  };
  parts.end = id(file.end, -1);
  parts.pad = id(file.pad, std::max<TokenId>(0, parts.end));
  auto model = MakeModel(file, facts, user_defined);
  parts.model = std::make_unique<NamedPieces>(std::move(model), std::move(facts.names));
  return parts;
}

}  // namespace

Result<TokenizerParts> ParseSentencePiece(std::string_view bytes, const std::string& file) {
  Result<ModelFile> model = ReadModel(bytes);
  Result<TokenizerParts> parts =
      model.ok() ? MakeParts(std::move(*model)) : Result<TokenizerParts>(model.status());
  if (parts.ok()) return parts;
  return Status(parts.status().code(), file + ": " + parts.status().message());
}

}  // namespace ridge
