// The expected ids are those of the package sentencepiece 0.2.3 for the same models.
#include "ridge/data/text/sentencepiece.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ridge/core/files.h"
#include "ridge/core/test_folder.h"
#include "ridge/data/text/open_tokenizer.h"
#include "ridge/data/text/score_text.h"
#include "ridge/data/text/unicode.h"

namespace ridge {
namespace {

using Ids = std::vector<TokenId>;

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string Part(uint64_t number, const std::string& bytes) {
  return Varint(number << 3 | 2) + Varint(bytes.size()) + bytes;
}
std::string Number(uint64_t number, uint64_t value) { return Varint(number << 3) + Varint(value); }

std::string Piece(const std::string& text, float score, uint64_t type) {
  std::string bits(sizeof score, '\0');
  std::memcpy(bits.data(), &score, sizeof score);
  return Part(1, Part(1, text) + Varint(2 << 3 | 5) + bits + Number(3, type));
}

constexpr uint64_t kUnigram = 1, kBpe = 2;

std::string Pieces() {
  return Piece("<unk>", 0, 2) + Piece("<s>", 0, 3) + Piece("</s>", 0, 3) + Piece("▁", -2, 1) +
         Piece("▁a", -1, 1) + Piece("a", -3, 1) + Piece("b", -3.5, 1) + Piece("ab", -1.5, 1) +
         Piece("▁ab", -4, 1) + Piece("<sep>", 0, 4) + Piece("ba", -1.2F, 5) + Piece("é", -3, 1);
}
std::string Model(uint64_t type, const std::string& normalizer = "",
                  const std::string& pieces = Pieces(), const std::string& trainer = "") {
  return pieces + Part(2, Number(3, type) + trainer) + Part(3, normalizer);
}

Ids Encode(const std::string& model, const std::string& text) {
  Result<TokenizerParts> parts = ParseSentencePiece(model, "m.model");
  EXPECT_TRUE(parts.ok()) << parts.status().message();
  return Tokenizer(std::move(*parts)).Encode(text);
}
std::string Refusal(const std::string& model) {
  const Result<TokenizerParts> parts = ParseSentencePiece(model, "m.model");
  return parts.ok() ? "ok" : parts.status().message();
}

TEST(SentencePieceTest, UnigramTakesTheBestSum) {
  const std::string model = Model(kUnigram);
  EXPECT_EQ(Encode(model, "ab ab"), (Ids{3, 7, 3, 7}));
  EXPECT_EQ(Encode(model, "  axxb "), (Ids{4, 0, 6}));
  EXPECT_EQ(Encode(model, "b<sep>a"), (Ids{3, 6, 9, 5}));
  EXPECT_EQ(Encode(model, "baba"), (Ids{3, 6, 7, 5}));
  EXPECT_EQ(Encode(model, "<s>a"), (Ids{3, 0, 5}));
  EXPECT_EQ(Encode(model, "é▁ab"), (Ids{3, 11, 3, 7}));
  EXPECT_EQ(Encode(model, ""), Ids{});
  EXPECT_EQ(Encode(model, "   "), Ids{});
}

TEST(SentencePieceTest, BpeJoinsTheBestPieceFirstAndCutsUnusedOnesAgain) {
  const std::string model = Model(kBpe);
  EXPECT_EQ(Encode(model, "ab ab"), (Ids{8, 8}));
  EXPECT_EQ(Encode(model, "  axxb "), (Ids{4, 0, 6}));
  EXPECT_EQ(Encode(model, "b<sep>a"), (Ids{3, 6, 9, 5}));
  EXPECT_EQ(Encode(model, "baba"), (Ids{3, 6, 5, 6, 5}));
  EXPECT_EQ(Encode(model, "é▁ab"), (Ids{3, 11, 8}));
}

TEST(SentencePieceTest, SpacesAreThoseThatTheNormalizerKeeps) {
  const std::string keeps = Number(4, 0), no_prefix = Number(3, 0);
  EXPECT_EQ(Encode(Model(kUnigram, keeps), "  axxb "), (Ids{3, 3, 4, 0, 6, 3}));
  EXPECT_EQ(Encode(Model(kBpe, keeps), "  axxb "), (Ids{3, 3, 4, 0, 6, 3}));
  EXPECT_EQ(Encode(Model(kUnigram, no_prefix), "ab ab"), (Ids{7, 3, 7}));
  EXPECT_EQ(Encode(Model(kBpe, no_prefix), "baba"), (Ids{6, 5, 6, 5}));
}

TEST(SentencePieceTest, BytesStandForUnknownCharacters) {
  std::string pieces = Pieces();
  for (int byte = 0; byte < 256; ++byte) pieces += Piece(fmt::format("<0x{:02X}>", byte), 0, 6);
  const std::string byte_fallback = Number(35, 1);
  for (const uint64_t type : {kUnigram, kBpe}) {
    const std::string model = Model(type, "", pieces, byte_fallback);
    EXPECT_EQ(Encode(model, "xé"), (Ids{3, 132, 11}));
    EXPECT_EQ(Encode(model, "a\n"), (Ids{4, 22}));
    const auto parts = ParseSentencePiece(model, "m.model");
    EXPECT_EQ(DecodePieces(parts->table, Ids{4, 22, 2, 9}), " a\n<sep>");
  }
}

// A piece that the user defined beats others of any sum: its score grows by 0.1 a byte.
TEST(SentencePieceTest, APieceOfTheUserHasABonusWhereNoScoreIsAboveZero) {
  const std::string pieces = Piece("<unk>", 0, 2) + Piece("▁", -0.01F, 1) + Piece("a", -0.01F, 1) +
                             Piece("b", -0.01F, 1) + Piece("ab", 0, 4);
  EXPECT_EQ(Encode(Model(kUnigram, "", pieces), "abab"), (Ids{1, 4, 4}));
}

TEST(SentencePieceTest, AFolderWithAModelIsATokenizer) {
  const TempFolder folder;
  folder.Write("spiece.model", Model(kUnigram));
  const auto opened = OpenTokenizer(folder.path());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ(opened->tokenizer->kind(), "sentencepiece");
  EXPECT_EQ(opened->tokenizer->vocab(), 12);
  EXPECT_EQ(opened->tokenizer->end(), 2);
  EXPECT_EQ(opened->tokenizer->EncodeFramed("ab", 9), (Ids{3, 7}));
  folder.Write("tokenizer_config.json", R"({"add_bos_token": true, "bos_token": "<s>"})");
  EXPECT_EQ(OpenTokenizer(folder.path())->tokenizer->EncodeFramed("ab", 9), (Ids{1, 3, 7}));
}

TEST(SentencePieceTest, RefusalsNameTheByte) {
  EXPECT_EQ(Refusal(""),
            "m.model: has no pieces: is no model of SentencePiece. hint: "
            "tokenizer.json or vocab.txt");
  EXPECT_EQ(Refusal(Pieces().substr(0, 40)), "m.model: byte 32: a part has 13 bytes; 8 are left");
  EXPECT_EQ(Refusal(std::string("\x0F")),
            "m.model: byte 1: has a field of an unknown type: is no message of protobuf");
  EXPECT_EQ(Refusal(std::string(11, '\xFF')),
            "m.model: byte 10: has a number of more than 64 bits");
  EXPECT_EQ(Refusal(Piece("", 0, 1)), "m.model: byte 2: a piece is empty");
  EXPECT_EQ(Refusal(Piece("\xFF", 0, 1)), "m.model: byte 2: a piece is no UTF-8");
  EXPECT_EQ(Refusal(Piece("a", std::nanf(""), 1)),
            "m.model: byte 2: the score of a piece is no number");
  EXPECT_EQ(Refusal(Piece("a", 0, 1)), "m.model: has no piece for unknown text");
  EXPECT_EQ(Refusal(Piece("a", 0, 2) + Piece("a", 0, 1)), "m.model: piece 1 'a' is there twice");
  EXPECT_EQ(Refusal(Piece("a", 0, 2) + Piece("b", 0, 9)),
            "m.model: piece 1 'b' has type 9; known are 1 to 6");
  EXPECT_EQ(Refusal(Model(3)), "m.model: its model_type is 3; known are unigram (1) and bpe (2)");
  EXPECT_EQ(Refusal(Model(kBpe, "", Pieces(), Number(35, 1))),
            "m.model: byte_fallback is set, but it has no piece <0x00>");
  EXPECT_EQ(Refusal(Model(kBpe, Part(2, "abcdefgh"))),
            "m.model: normalizer_spec: precompiled_charsmap: its trie has 1684234849 bytes; 4 are "
            "left, and they come in fours");
}

// serde_json multiplies the digits by a power of ten, once rounded too often.
TEST(ScoreText, IsTheNumberThatThePackageReads) {
  EXPECT_EQ(ReadScore("-2.5"), -2.5);
  EXPECT_EQ(ReadScore("1e3"), 1000.0);
  EXPECT_EQ(ReadScore("0.0"), 0.0);
  EXPECT_EQ(ReadScore("1e-400"), 0.0);
  EXPECT_EQ(ReadScore("-9.987654321098765"), -9987654321098765.0 / 1e15);
  // 17 digits: the integer itself is rounded first.
  EXPECT_EQ(ReadScore("-12.345678901234567"), -static_cast<double>(12345678901234567U) / 1e15);
  EXPECT_EQ(ReadScore("123456789012345678901234567890.5"), 12345678901234567890.0 * 1e10);
}

TEST(UnicodeTest, CompatibleCharactersBecomeTheirPlainOnes) {
  EXPECT_EQ(Nfkd("ﬁ①Ａ"), "fi1A");
  EXPECT_EQ(Nfkc("ﬁ①Ａ"), "fi1A");
  EXPECT_EQ(Nfkc("ｶﾞ"), "ガ");
  EXPECT_EQ(Nfkd("é"), "e\xCC\x81");
  EXPECT_EQ(Nfkc("e\xCC\x81"), "é");
}

}  // namespace
}  // namespace ridge
