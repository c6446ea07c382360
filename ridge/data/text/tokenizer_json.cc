// Each part is made by a row of a table: its type's name and a function.  Within this file a wrong
// part is a Refusal, an exception that ParseTokenizerJson catches: the parts are nested, and so are
// the places that messages name.
#include "ridge/data/text/tokenizer_json.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "ridge/data/text/bpe.h"
#include "ridge/data/text/charsmap.h"
#include "ridge/data/text/score_text.h"
#include "ridge/data/text/unicode.h"
#include "ridge/data/text/unigram.h"
#include "ridge/data/text/wordpiece.h"

namespace ridge {
namespace {

using Json = nlohmann::json;

constexpr int kMostDepth = 8;               // of sequences within sequences
constexpr TokenId kMostId = (1 << 24) - 1;  // public vocabularies have up to 2^18 pieces
constexpr size_t kLongestPiece = 1 << 16;   // bytes

// Builds the tree as the library does, but for fractions.
class TreeBuilder : public nlohmann::detail::json_sax_dom_parser<Json> {
 public:
  explicit TreeBuilder(Json& tree) : json_sax_dom_parser(tree) {}
  bool number_float(double, const std::string& text) {
    return json_sax_dom_parser::number_float(ReadScore(text), text);
  }
};

Json ParseTree(const std::string& text) {
  Json tree;
  TreeBuilder builder(tree);
  Json::sax_parse(text, &builder);
  return tree;
}

struct Refusal : std::runtime_error {
  Refusal(ErrorCode why, const std::string& message) : std::runtime_error(message), code(why) {}
  ErrorCode code;
};

// A value and where it stands in the file.
struct At {
  const Json* json;
  std::string place;  // "model.vocab"
  int depth = 0;

  [[noreturn]] void Bad(const std::string& what) const {
    throw Refusal(ErrorCode::kInvalidData, place + ": " + what);
  }
  [[noreturn]] void Unknown(const std::string& what) const {
    throw Refusal(ErrorCode::kUnsupported, place + ": " + what);
  }

  bool IsSet(const char* key) const {
    return json->is_object() && json->contains(key) && !json->at(key).is_null();
  }
  At Child(const std::string& key) const {
    if (!json->is_object()) Bad("is no object");
    if (!json->contains(key)) Bad("has no '" + key + "'");
    return {&json->at(key), place.empty() ? key : place + "." + key, depth + 1};
  }
  std::vector<At> Elements() const {
    if (!json->is_array()) Bad("is no list");
    std::vector<At> elements;
    for (size_t i = 0; i < json->size(); ++i)
      elements.push_back({&(*json)[i], fmt::format("{}[{}]", place, i), depth + 1});
    return elements;
  }

  const std::string& Text() const {
    if (!json->is_string()) Bad("is no string");
    return json->get_ref<const std::string&>();
  }
  TokenId Id() const {
    if (!json->is_number_integer()) Bad("is no integer");
    const auto id = json->get<int64_t>();
    if (id < 0 || id > kMostId) Bad(fmt::format("is {}; ids are 0 to {}", id, kMostId));
    return static_cast<TokenId>(id);
  }
  bool Flag(const char* key, bool missing) const {
    if (!IsSet(key)) return missing;
    const At at = Child(key);
    if (!at.json->is_boolean()) at.Bad("is neither true nor false");
    return at.json->get<bool>();
  }
  std::string TextOr(const char* key, const std::string& missing) const {
    return IsSet(key) ? Child(key).Text() : missing;
  }
};

// Calls make(part), where `parts` is a row "type" -> make.
template <typename Row, size_t kRows, typename... Arguments>
void Make(const At& part, const Row (&rows)[kRows], Arguments&... arguments) {
  if (part.depth > 2 * kMostDepth) part.Bad("is nested too deep");
  const std::string& type = part.Child("type").Text();
  std::string known;
  for (const Row& row : rows) {
    if (type == row.type) return row.make(part, arguments...);
    known += (known.empty() ? "" : ", ") + std::string(row.type);
  }
  part.Unknown(fmt::format("type '{}' is not known; known are {}", type, known));
}

// ---- normalizers

using Normalizers = std::vector<Normalizer>;
void AddNormalizer(const At& part, Normalizers& out);

void AddNormalizers(const At& part, Normalizers& out) {
  for (const At& child : part.Child("normalizers").Elements()) AddNormalizer(child, out);
}

void AddBertNormalizer(const At& part, Normalizers& out) {
  BertRules rules;
  rules.clean = part.Flag("clean_text", true);
  rules.spaced_cjk = part.Flag("handle_chinese_chars", true);
  rules.lower = part.Flag("lowercase", true);
  rules.strip_accents = part.Flag("strip_accents", rules.lower);
  out.emplace_back([rules](std::string& text) { NormalizeBert(rules, text); });
}

void AddReplace(const At& part, Normalizers& out) {
  const At pattern = part.Child("pattern");
  const std::string content = part.Child("content").Text();
  if (pattern.IsSet("String")) {
    const std::string from = pattern.Child("String").Text();
    out.emplace_back([=](std::string& text) { ReplaceAll(from, content, text); });
  } else if (const std::string& regex = pattern.Child("Regex").Text(); regex == " {2,}") {
    out.emplace_back([=](std::string& text) { ReplaceSpaces(content, text); });
  } else {
    pattern.Unknown(fmt::format("the expression '{}' is not known", regex));
  }
}

void AddPrepend(const At& part, Normalizers& out) {
  const std::string prefix = part.Child("prepend").Text();
  out.emplace_back([=](std::string& text) {
    if (!text.empty()) text.insert(0, prefix);
  });
}

void AddStrip(const At& part, Normalizers& out) {
  const bool left = part.Flag("strip_left", true), right = part.Flag("strip_right", true);
  out.emplace_back([=](std::string& text) { StripSpace(left, right, text); });
}

// RFC 4648, without line ends.
std::string FromBase64(const At& at) {
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (char c : at.Text()) {
    if (c == '=') break;
    const std::string_view letters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t value = letters.find(c);
    if (value == std::string_view::npos) at.Bad("is no base64");
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count & 0xFF));
  }
  return bytes;
}

void AddPrecompiled(const At& part, Normalizers& out) {
  if (!part.IsSet("precompiled_charsmap")) return;
  Result<Charsmap> map =
      Charsmap::Parse(part.place, FromBase64(part.Child("precompiled_charsmap")));
  if (!map.ok()) throw Refusal(map.status().code(), map.status().message());
  if (map->empty()) return;
  out.emplace_back([shared = std::make_shared<Charsmap>(std::move(*map))](std::string& text) {
    ApplyCharsmap(*shared, text);
  });
}

struct NormalizerRow {
  const char* type;
  void (*make)(const At&, Normalizers&);
};
constexpr NormalizerRow kNormalizers[] = {
    {"BertNormalizer", AddBertNormalizer},
    {"ByteLevel", [](const At&, Normalizers& out) { out.emplace_back(MapBytes); }},
    {"Lowercase",
     [](const At&, Normalizers& out) {
       out.emplace_back([](std::string& text) { text = ToLower(text); });
     }},
    {"NFC",
     [](const At&, Normalizers& out) {
       out.emplace_back([](std::string& text) { text = Nfc(text); });
     }},
    {"NFD",
     [](const At&, Normalizers& out) {
       out.emplace_back([](std::string& text) { text = Nfd(text); });
     }},
    {"NFKC",
     [](const At&, Normalizers& out) {
       out.emplace_back([](std::string& text) { text = Nfkc(text); });
     }},
    {"NFKD",
     [](const At&, Normalizers& out) {
       out.emplace_back([](std::string& text) { text = Nfkd(text); });
     }},
    {"Nmt", [](const At&, Normalizers& out) { out.emplace_back(NormalizeNmt); }},
    {"Precompiled", AddPrecompiled},
    {"Prepend", AddPrepend},
    {"Replace", AddReplace},
    {"Sequence", AddNormalizers},
    {"Strip", AddStrip},
    {"StripAccents", [](const At&, Normalizers& out) { out.emplace_back(StripCombiningMarks); }},
};

void AddNormalizer(const At& part, Normalizers& out) { Make(part, kNormalizers, out); }

// ---- pre-tokenizers

using Splitters = std::vector<Splitter>;
void AddSplitter(const At& part, Splitters& out);

void AddSplitters(const At& part, Splitters& out) {
  for (const At& child : part.Child("pretokenizers").Elements()) AddSplitter(child, out);
}

void AddCut(const MatchAt& match, SplitBehavior behavior, bool inverted, Splitters& out) {
  out.emplace_back(
      [=](std::vector<Piece>& pieces) { SplitPieces(match, behavior, inverted, pieces); });
}

SplitBehavior BehaviorOf(const At& at) {
  constexpr std::pair<const char*, SplitBehavior> kBehaviors[] = {
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous}};
  for (const auto& [name, behavior] : kBehaviors) {
    if (at.Text() == name) return behavior;
  }
  at.Unknown("'" + at.Text() + "' is no known behavior");
}

void AddSplit(const At& part, Splitters& out) {
  const SplitBehavior behavior = BehaviorOf(part.Child("behavior"));
  const bool inverted = part.Flag("invert", false);
  const At pattern = part.Child("pattern");
  if (pattern.IsSet("String")) {
    const std::string text = pattern.Child("String").Text();
    return AddCut(MatchText(text), behavior, inverted, out);
  }
  const std::string& regex = pattern.Child("Regex").Text();
  const std::optional<Pattern> known = Pattern::Find(regex);
  if (!known) pattern.Unknown(fmt::format("the expression '{}' is not known", regex));
  AddCut(MatchPattern(*known), behavior, inverted, out);
}

void AddByteLevel(const At& part, Splitters& out) {
  const bool prefix = part.Flag("add_prefix_space", true), cut = part.Flag("use_regex", true);
  out.emplace_back([=](std::vector<Piece>& pieces) { SplitByteLevel(prefix, cut, pieces); });
}

PrependScheme SchemeOf(const At& part) {
  if (!part.IsSet("prepend_scheme"))
    return part.Flag("add_prefix_space", true) ? PrependScheme::kAlways : PrependScheme::kNever;
  const std::string& scheme = part.Child("prepend_scheme").Text();
  if (scheme == "always") return PrependScheme::kAlways;
  if (scheme == "first") return PrependScheme::kFirst;
  if (scheme != "never") part.Unknown("prepend_scheme '" + scheme + "' is not known");
  return PrependScheme::kNever;
}

void AddMetaspace(const At& part, Splitters& out) {
  const std::string mark = part.Child("replacement").Text();
  const PrependScheme scheme = SchemeOf(part);
  const bool cut = part.Flag("split", true);
  out.emplace_back([=](std::vector<Piece>& pieces) { SplitMetaspace(mark, scheme, cut, pieces); });
}

bool IsAnyNumber(char32_t code) { return IsNumber(CategoryOf(code)); }

void AddDigits(const At& part, Splitters& out) {
  const bool single = part.Flag("individual_digits", false);
  AddCut(MatchChar(IsAnyNumber), single ? SplitBehavior::kIsolated : SplitBehavior::kContiguous,
         /*inverted=*/false, out);
}

void AddPunctuation(const At& part, Splitters& out) {
  const SplitBehavior behavior =
      part.IsSet("behavior") ? BehaviorOf(part.Child("behavior")) : SplitBehavior::kIsolated;
  AddCut(MatchChar(IsBertPunctuation), behavior, /*inverted=*/false, out);
}

struct SplitterRow {
  const char* type;
  void (*make)(const At&, Splitters&);
};
constexpr SplitterRow kSplitters[] = {
    {"BertPreTokenizer", [](const At&, Splitters& out) { out.emplace_back(SplitBert); }},
    {"ByteLevel", AddByteLevel},
    {"Digits", AddDigits},
    {"Metaspace", AddMetaspace},
    {"Punctuation", AddPunctuation},
    {"Sequence", AddSplitters},
    {"Split", AddSplit},
    {"Whitespace",
     [](const At&, Splitters& out) {
       AddCut(MatchPattern(*Pattern::Find(R"(\w+|[^\w\s]+)")), SplitBehavior::kRemoved,
              /*inverted=*/true, out);
     }},
    {"WhitespaceSplit",
     [](const At&, Splitters& out) {
       AddCut(MatchChar(IsSpace), SplitBehavior::kRemoved, /*inverted=*/false, out);
     }},
};

void AddSplitter(const At& part, Splitters& out) { Make(part, kSplitters, out); }

// ---- models

Vocabulary ReadVocabulary(const At& vocab) {
  if (!vocab.json->is_object()) vocab.Bad("is no object");
  Vocabulary vocabulary;
  for (const auto& [piece, id] : vocab.json->items()) {
    if (piece.size() > kLongestPiece)
      vocab.Bad(
          fmt::format("has a piece of {} bytes, at most {} are read", piece.size(), kLongestPiece));
    vocabulary.Add(piece, At{&id, vocab.place + "." + piece}.Id());
  }
  return vocabulary;
}

// The id of the piece that `key` names; -1 when it names none.
TokenId PieceNamed(const At& model, const char* key, const Vocabulary& vocabulary) {
  if (!model.IsSet(key)) return -1;
  const At at = model.Child(key);
  const auto id = vocabulary.Find(at.Text());
  if (!id) at.Bad("'" + at.Text() + "' is not in the vocabulary");
  return *id;
}

void MakeWordPieceModel(const At& part, TokenizerParts& parts) {
  parts.kind = "wordpiece";
  Vocabulary vocabulary = ReadVocabulary(part.Child("vocab"));
  WordPieceRules rules;
  rules.unknown = PieceNamed(part, "unk_token", vocabulary);
  if (rules.unknown < 0) part.Bad("has no unk_token");
  rules.prefix = part.TextOr("continuing_subword_prefix", rules.prefix);
  if (part.IsSet("max_input_chars_per_word"))
    rules.longest_word = part.Child("max_input_chars_per_word").Id();
  if (rules.longest_word > static_cast<int64_t>(kLongestPiece))
    part.Bad(fmt::format("max_input_chars_per_word is {}; at most {} are read", rules.longest_word,
                         kLongestPiece));
  parts.model = MakeWordPiece(std::move(vocabulary), std::move(rules));
}

void MakeWordLevelModel(const At& part, TokenizerParts& parts) {
  parts.kind = "wordlevel";
  Vocabulary vocabulary = ReadVocabulary(part.Child("vocab"));
  const TokenId unknown =
      part.IsSet("unk_token") ? vocabulary.Find(part.Child("unk_token").Text()).value_or(-1) : -1;
  parts.model = MakeWordLevel(std::move(vocabulary), unknown);
}

// "a b", or ["a", "b"].
std::pair<std::string, std::string> MergeOf(const At& at) {
  if (at.json->is_array()) {
    const std::vector<At> both = at.Elements();
    if (both.size() != 2) at.Bad(fmt::format("has {} parts, a merge has 2", both.size()));
    return {both[0].Text(), both[1].Text()};
  }
  const std::string& text = at.Text();
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
    at.Bad("'" + text + "' is no merge of two pieces");
  return {text.substr(0, space), text.substr(space + 1)};
}

MergeTable ReadMerges(const At& merges, const Vocabulary& vocabulary, size_t prefix) {
  if (!merges.json->is_array()) merges.Bad("is no list");
  MergeTable table;
  for (size_t rank = 0; rank < merges.json->size(); ++rank) {
    const At at{&(*merges.json)[rank], fmt::format("{}[{}]", merges.place, rank)};
    const auto [first, second] = MergeOf(at);
    const auto id = [&](const std::string& piece) {
      const auto found = vocabulary.Find(piece);
      if (!found) at.Bad("'" + piece + "' is not in the vocabulary");
      return *found;
    };
    if (second.size() < prefix) at.Bad("'" + second + "' lacks the prefix");
    const uint64_t key = MergeKey(id(first), id(second));
    table[key] = {static_cast<int32_t>(rank), id(first + second.substr(prefix))};
  }
  return table;
}

// The ids of <0x00> to <0xFF>; empty when one is missing.
template <typename Find>
std::vector<TokenId> BytePieces(const Find& find) {
  std::vector<TokenId> ids;
  for (int byte = 0; byte < 256; ++byte) {
    const std::optional<TokenId> id = find(fmt::format("<0x{:02X}>", byte));
    if (!id) return {};
    ids.push_back(*id);
  }
  return ids;
}

void MakeBpeModel(const At& part, TokenizerParts& parts) {
  parts.kind = "bpe";
  if (part.IsSet("dropout") && *part.Child("dropout").json != 0)
    part.Unknown("dropout is not known: the ids of a text are always the same");
  Vocabulary vocabulary = ReadVocabulary(part.Child("vocab"));
  BpeRules rules;
  rules.prefix = part.TextOr("continuing_subword_prefix", "");
  rules.suffix = part.TextOr("end_of_word_suffix", "");
  rules.merges = ReadMerges(part.Child("merges"), vocabulary, rules.prefix.size());
  rules.unknown = PieceNamed(part, "unk_token", vocabulary);
  rules.joins_unknown = part.Flag("fuse_unk", false);
  rules.whole_words_first = part.Flag("ignore_merges", false);
  if (part.Flag("byte_fallback", false)) {
    rules.bytes = BytePieces([&](const std::string& piece) { return vocabulary.Find(piece); });
    if (rules.bytes.empty())
      part.Unknown("byte_fallback needs the pieces <0x00> to <0xFF>; one is missing");
  }
  parts.model = MakeBpe(std::move(vocabulary), std::move(rules));
}

void MakeUnigramModel(const At& part, TokenizerParts& parts) {
  parts.kind = "unigram";
  UnigramRules rules;
  const At vocab = part.Child("vocab");
  if (!vocab.json->is_array()) vocab.Bad("is no list");
  for (size_t id = 0; id < vocab.json->size(); ++id) {
    const At at{&(*vocab.json)[id], fmt::format("{}[{}]", vocab.place, id)};
    const std::vector<At> both = at.Elements();
    const bool fits = both.size() == 2 && both[1].json->is_number();
    if (!fits) at.Bad("is no piece with a score");
    if (both[0].Text().size() > kLongestPiece) at.Bad("is too long");
    rules.pieces.push_back({both[0].Text(), both[1].json->get<double>()});
  }
  if (part.IsSet("unk_id")) rules.unknown = part.Child("unk_id").Id();
  if (rules.unknown >= static_cast<int64_t>(rules.pieces.size()))
    part.Bad(fmt::format("unk_id is {}; there are {} pieces", rules.unknown, rules.pieces.size()));
  if (part.Flag("byte_fallback", false)) {
    Vocabulary vocabulary;
    for (size_t id = 0; id < rules.pieces.size(); ++id)
      vocabulary.Add(rules.pieces[id].text, static_cast<TokenId>(id));
    rules.bytes = BytePieces([&](const std::string& piece) { return vocabulary.Find(piece); });
    if (rules.bytes.empty())
      part.Unknown("byte_fallback needs the pieces <0x00> to <0xFF>; one is missing");
  }
  parts.model = MakeUnigram(std::move(rules));
}

struct ModelRow {
  const char* type;
  void (*make)(const At&, TokenizerParts&);
};
constexpr ModelRow kModels[] = {{"BPE", MakeBpeModel},
                                {"Unigram", MakeUnigramModel},
                                {"WordLevel", MakeWordLevelModel},
                                {"WordPiece", MakeWordPieceModel}};

void MakeModel(const At& part, TokenizerParts& parts) {
  if (part.IsSet("type")) return Make(part, kModels, parts);
  // Older files have no type.
  if (part.IsSet("merges")) return MakeBpeModel(part, parts);
  if (part.IsSet("unk_id")) return MakeUnigramModel(part, parts);
  MakeWordPieceModel(part, parts);
}

// ---- added tokens, and what stands around a sequence

void ReadAddedTokens(const At& list, TokenizerParts& parts) {
  for (const At& at : list.Elements()) {
    AddedToken token;
    token.content = at.Child("content").Text();
    if (token.content.size() > kLongestPiece) at.Bad("its content is too long");
    token.id = parts.model->Find(token.content).value_or(at.Child("id").Id());
    token.single_word = at.Flag("single_word", false);
    token.takes_left = at.Flag("lstrip", false);
    token.takes_right = at.Flag("rstrip", false);
    token.normalized = at.Flag("normalized", !at.Flag("special", false));
    parts.vocab = std::max<int64_t>(parts.vocab, int64_t{token.id} + 1);
    if (token.normalized) {
      for (const Normalizer& normalize : parts.normalizers) normalize(token.content);
    }
    (token.normalized ? parts.normalized_tokens : parts.raw_tokens).Add(token);
  }
}

void ReadTemplate(const At& part, TokenizerParts& parts) {
  std::vector<TokenId>* side = &parts.frame.before;
  for (const At& at : part.Child("single").Elements()) {
    if (at.IsSet("Sequence")) {
      side = &parts.frame.after;
      continue;
    }
    const std::string& name = at.Child("SpecialToken").Child("id").Text();
    for (const At& id : part.Child("special_tokens").Child(name).Child("ids").Elements())
      side->push_back(id.Id());
  }
}

// ["[SEP]", 102] and ["[CLS]", 101].
void ReadClsSep(const At& part, TokenizerParts& parts) {
  const auto id = [&](const char* key) {
    const std::vector<At> both = part.Child(key).Elements();
    if (both.size() != 2) part.Child(key).Bad("is no token with its id");
    return both[1].Id();
  };
  parts.frame.before.push_back(id("cls"));
  parts.frame.after.push_back(id("sep"));
}

void ReadProcessors(const At& part, TokenizerParts& parts);

constexpr ModelRow kProcessors[] = {{"BertProcessing", ReadClsSep},
                                    {"ByteLevel", [](const At&, TokenizerParts&) {}},
                                    {"RobertaProcessing", ReadClsSep},
                                    {"Sequence", ReadProcessors},
                                    {"TemplateProcessing", ReadTemplate}};

void ReadProcessors(const At& part, TokenizerParts& parts) {
  for (const At& child : part.Child("processors").Elements()) Make(child, kProcessors, parts);
}

void ReadLimits(const At& root, TokenizerParts& parts) {
  if (root.IsSet("truncation")) {
    const At cut = root.Child("truncation");
    parts.most_tokens = cut.Child("max_length").Id();
    parts.cuts_left = cut.TextOr("direction", "Right") == "Left";
  }
  if (!root.IsSet("padding")) return;
  const At padding = root.Child("padding");
  parts.pad = padding.Child("pad_id").Id();
  parts.pads_left = padding.TextOr("direction", "Right") == "Left";
}

// The id of the first of these pieces that there is.
TokenId FirstOf(const At& root, const TokenizerParts& parts,
                std::initializer_list<const char*> names, TokenId missing) {
  for (const char* name : names) {
    if (const auto id = parts.model->Find(name)) return *id;
    if (!root.IsSet("added_tokens")) continue;
    for (const At& at : root.Child("added_tokens").Elements()) {
      if (at.Child("content").Text() == name) return at.Child("id").Id();
    }
  }
  return missing;
}

// Whether a part, or one that it is a sequence of, is of this type.
bool HasPart(const Json& part, const char* type) {
  if (!part.is_structured()) return false;
  if (part.is_object() && part.contains("type") && part.at("type") == type) return true;
  return std::any_of(part.begin(), part.end(),
                     [&](const Json& inner) { return HasPart(inner, type); });
}

Joining JoiningOf(const Json& json, const TokenizerParts& parts) {
  if (parts.kind == "wordpiece") return Joining::kWordPieces;
  for (const char* key : {"pre_tokenizer", "normalizer", "decoder"}) {
    if (!json.contains(key)) continue;
    if (HasPart(json.at(key), "ByteLevel")) return Joining::kByteLevel;
    if (HasPart(json.at(key), "Metaspace") || HasPart(json.at(key), "ByteFallback"))
      return Joining::kMetaspace;
  }
  return Joining::kPlain;
}

void SetPiece(const std::string& piece, TokenId id, TokenizerParts& parts) {
  std::vector<std::string>& pieces = parts.table.pieces;
  if (static_cast<size_t>(id) >= pieces.size()) pieces.resize(static_cast<size_t>(id) + 1);
  pieces[static_cast<size_t>(id)] = piece;
}

// REQUIRES: the vocabulary and the added tokens are checked.
void ReadPieces(const Json& json, TokenizerParts& parts) {
  parts.table.joining = JoiningOf(json, parts);
  const Json& vocab = json.at("model").at("vocab");
  if (vocab.is_object()) {
    for (const auto& [piece, id] : vocab.items()) SetPiece(piece, id.get<TokenId>(), parts);
  } else {
    for (size_t id = 0; id < vocab.size(); ++id)
      SetPiece(vocab[id][0].get<std::string>(), static_cast<TokenId>(id), parts);
  }
  if (!json.contains("added_tokens") || !json.at("added_tokens").is_array()) return;
  for (const Json& token : json.at("added_tokens")) {
    const std::string content = token.at("content").get<std::string>();
    SetPiece(content, parts.model->Find(content).value_or(token.at("id").get<TokenId>()), parts);
  }
}

TokenizerParts Read(const Json& json) {
  TokenizerParts parts;
  const At root{&json, ""};
  if (root.IsSet("normalizer")) AddNormalizer(root.Child("normalizer"), parts.normalizers);
  if (root.IsSet("pre_tokenizer")) AddSplitter(root.Child("pre_tokenizer"), parts.splitters);
  MakeModel(root.Child("model"), parts);
  parts.vocab = parts.model->size();
  if (root.IsSet("added_tokens")) ReadAddedTokens(root.Child("added_tokens"), parts);
  if (root.IsSet("post_processor")) Make(root.Child("post_processor"), kProcessors, parts);
  parts.end =
      FirstOf(root, parts, {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "[SEP]"}, -1);
  parts.pad = FirstOf(root, parts, {"[PAD]", "<pad>", "<|pad|>", "<|endoftext|>"},
                      std::max<TokenId>(0, parts.end));
  ReadLimits(root, parts);
  ReadPieces(json, parts);
  return parts;
}

}  // namespace

Result<TokenizerParts> ParseTokenizerJson(const std::string& text, const std::string& file) {
  try {
    return Read(ParseTree(text));
  } catch (const Refusal& refusal) {
    const std::string what = refusal.what();
    return Status(refusal.code, file + ": " + (what.starts_with(": ") ? what.substr(2) : what));
  } catch (const Json::exception& error) {
    return Status(ErrorCode::kInvalidData, fmt::format("{}: is no JSON: {}", file, error.what()));
  }
}

}  // namespace ridge
