#include "ridge/core/sha256.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

TEST(Sha256, GivesTheAnswersOfFips180) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256Hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnHowTheBytesAreCut) {
  const std::string text(200, 'x');
  const std::string expected = Sha256Hex(text);
  for (size_t first = 0; first <= text.size(); ++first) {
    Sha256 hash;
    hash.Add(std::string_view(text).substr(0, first));
    hash.Add(std::string_view(text).substr(first));
    ASSERT_EQ(hash.Hex(), expected) << first;
  }
}

TEST(Sha256, HexCanBeAskedInBetween) {
  Sha256 hash;
  hash.Add("ab");
  EXPECT_EQ(hash.Hex(), Sha256Hex("ab"));
  hash.Add("c");
  EXPECT_EQ(hash.Hex(), Sha256Hex("abc"));
}

TEST(Sha256, PadsAtEveryLengthAroundABlock) {
  // Of 55, 56, 63, 64 and 65 bytes 'a': the lengths where the padding changes its form.
  EXPECT_EQ(Sha256Hex(std::string(55, 'a')).substr(0, 8), "9f4390f8");
  EXPECT_EQ(Sha256Hex(std::string(56, 'a')).substr(0, 8), "b35439a4");
  EXPECT_EQ(Sha256Hex(std::string(63, 'a')).substr(0, 8), "7d3e74a0");
  EXPECT_EQ(Sha256Hex(std::string(64, 'a')).substr(0, 8), "ffe054fe");
  EXPECT_EQ(Sha256Hex(std::string(65, 'a')).substr(0, 8), "635361c4");
}

}  // namespace
}  // namespace ridge
