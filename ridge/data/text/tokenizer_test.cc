// The expected ids and pieces are those of the package tokenizers 0.23.3 for the same files.
#include <gtest/gtest.h>

#include "ridge/core/files.h"
#include "ridge/core/test_folder.h"
#include "ridge/data/text/open_tokenizer.h"
#include "ridge/data/text/tokenizer_json.h"
#include "ridge/data/text/unicode.h"

namespace ridge {
namespace {

using Ids = std::vector<TokenId>;

constexpr const char* kWordPiece = R"({
 "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2,
  "[SEP]": 3, "the": 4, "cat": 5, "##s": 6, "nai": 7, "##ve": 8, "!": 9, "中": 10, "un": 11}},
 "normalizer": {"type": "BertNormalizer", "lowercase": true, "strip_accents": null},
 "pre_tokenizer": {"type": "BertPreTokenizer"},
 "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
 "added_tokens": [{"id": 3, "content": "[SEP]", "special": true}]})";

constexpr const char* kByteLevel = R"({
 "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "abab": 3, "ba": 4, "Ġ": 5, "Ġa": 6},
  "merges": ["a b", ["Ġ", "a"], "ab ab", "b a"]},
 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}})";

constexpr const char* kUnigram = R"({
 "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["▁", -2.0], ["▁a", -1.0],
  ["a", -3.0], ["b", -3.5], ["ab", -1.5], ["▁ab", -4.0]]},
 "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}})";

Ids Encode(const char* json, const std::string& text) {
  Result<TokenizerParts> parts = ParseTokenizerJson(json, "t.json");
  EXPECT_TRUE(parts.ok()) << parts.status().message();
  return Tokenizer(std::move(*parts)).EncodeFramed(text, /*most=*/1000);
}

std::string Refusal(const std::string& json) {
  const Result<TokenizerParts> parts = ParseTokenizerJson(json, "t.json");
  return parts.ok() ? "ok" : parts.status().message();
}

std::vector<std::string> Cut(const Pattern& pattern, const std::string& text) {
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size();) {
    const size_t length = std::max<size_t>(1, pattern.Match(text, at));
    pieces.push_back(text.substr(at, length));
    at += length;
  }
  return pieces;
}

TEST(TokenizerTest, WordPieceCutsWordsAsBert) {
  EXPECT_EQ(Encode(kWordPiece, "The CATS!"), (Ids{2, 4, 5, 6, 9, 3}));
  EXPECT_EQ(Encode(kWordPiece, "naïve 中the"), (Ids{2, 7, 8, 10, 4, 3}));
  EXPECT_EQ(Encode(kWordPiece, "un[SEP]cat"), (Ids{2, 11, 3, 5, 3}));
  EXPECT_EQ(Encode(kWordPiece, std::string("dog\0\u200bcat", 10)), (Ids{2, 1, 3}));
  EXPECT_EQ(Encode(kWordPiece, std::string(101, 'x')), (Ids{2, 1, 3}));
  EXPECT_EQ(Encode(kWordPiece, ""), (Ids{2, 3}));
}

TEST(TokenizerTest, ByteLevelMergesTheFirstOfTheListFirst) {
  EXPECT_EQ(Encode(kByteLevel, "ababab"), (Ids{3, 2}));
  EXPECT_EQ(Encode(kByteLevel, "bba"), (Ids{1, 4}));
  EXPECT_EQ(Encode(kByteLevel, " abab a"), (Ids{5, 3, 6}));
  EXPECT_EQ(Encode(kByteLevel, "aab"), (Ids{0, 2}));
}

TEST(TokenizerTest, UnigramTakesTheBestSumAndJoinsUnknownCharacters) {
  EXPECT_EQ(Encode(kUnigram, "ab ab"), (Ids{1, 5, 1, 5}));
  EXPECT_EQ(Encode(kUnigram, "axxb"), (Ids{2, 0, 4}));
  EXPECT_EQ(Encode(kUnigram, " b"), (Ids{1, 4}));
}

TEST(TokenizerTest, ALongTextKeepsItsFrame) {
  Result<TokenizerParts> parts = ParseTokenizerJson(kWordPiece, "t.json");
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(Tokenizer(std::move(*parts)).EncodeFramed("the the cat cat", 4), (Ids{2, 4, 4, 3}));
}

TEST(TokenizerTest, PatternsCutAsTheirFamiliesDo) {
  const std::string text = "I'LL  don't .. 12345\n\n  é";
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(Cut(Pattern::Gpt2(), text),
            (Pieces{"I", "'", "LL", " ", " don", "'t", " ..", " 12345", "\n\n ", " é"}));
  const auto llama = Pattern::Find(
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)");
  ASSERT_TRUE(llama);
  EXPECT_EQ(Cut(*llama, text),
            (Pieces{"I", "'LL", " ", " don", "'t", " ..", " ", "123", "45", "\n\n", " ", " é"}));
  EXPECT_FALSE(Pattern::Find("(a*)*b"));
}

TEST(TokenizerTest, UnknownPartsAreRefusedByNameAndPlace) {
  EXPECT_EQ(Refusal("[]"), "t.json: is no object");
  EXPECT_EQ(Refusal(R"({"model": {"type": "Magic"}})"),
            "t.json: model: type 'Magic' is not known; known are BPE, Unigram, WordLevel, "
            "WordPiece");
  EXPECT_EQ(Refusal(R"({"pre_tokenizer": {"type": "Split", "behavior": "Isolated",
                        "pattern": {"Regex": "(a*)*b"}}})"),
            "t.json: pre_tokenizer.pattern: the expression '(a*)*b' is not known");
  EXPECT_EQ(Refusal(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})"),
            "t.json: model.merges[0]: 'b' is not in the vocabulary");
  EXPECT_EQ(Refusal(R"({"model": {"type": "WordPiece", "vocab": {"a": -1}}})"),
            "t.json: model.vocab.a: is -1; ids are 0 to 16777215");
}

TEST(TokenizerTest, VocabTxtMeansTheSameAsItsTokenizerJson) {
  const TempFolder folder;
  const std::string path = folder.path() + "/vocab.txt";
  ASSERT_TRUE(
      WriteFileAtomically(path, "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\ncat\n##s\nnai\n##ve\n!\n中\nun\n")
          .ok());
  const Result<OpenedTokenizer> opened = OpenTokenizer(folder.path());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  for (const char* text : {"The CATS!", "naïve 中the", "un[SEP]cat"})
    EXPECT_EQ(opened->tokenizer->EncodeFramed(text, 1000), Encode(kWordPiece, text));
}

TEST(UnicodeTest, BrokenBytesBecomeReplacementCharacters) {
  EXPECT_EQ(ToUtf8("a\xE2\x82z\xFF"), "a\uFFFDz\uFFFD");
  EXPECT_EQ(ToUtf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
}

TEST(UnicodeTest, CompositionInvertsDecomposition) {
  for (const char* text : {"é", "ộ", "각", "Å"}) {
    EXPECT_NE(Nfd(text), text);
    EXPECT_EQ(Nfc(Nfd(text)), text);
  }
}

TEST(Decode, GivesTheTextBack) {
  const std::string text = "Zwölf Boxkämpfer \n\xF0\x9F\x98\x80";
  EXPECT_EQ(ByteTokenizer()->Decode(ByteTokenizer()->Encode(text)), text);
  const PieceTable words = {Joining::kWordPieces, {"un", "##believ", "##able", "", "!"}};
  EXPECT_EQ(DecodePieces(words, std::vector<TokenId>{0, 1, 2, 4, 9, -1}), " unbelievable !");
  const PieceTable bytes = {Joining::kByteLevel, {"\xC4\xA0you", "\xC3\x83", "\xC2\xB6"}};
  EXPECT_EQ(DecodePieces(bytes, std::vector<TokenId>{0, 1, 2}), " you\xC3\xB6");
  const PieceTable marks = {Joining::kMetaspace, {"\xE2\x96\x81one", "<0x0A>", "<0xZZ>"}};
  EXPECT_EQ(DecodePieces(marks, std::vector<TokenId>{0, 1, 2}), " one\n<0xZZ>");
}

}  // namespace
}  // namespace ridge
