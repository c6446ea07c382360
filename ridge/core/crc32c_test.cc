#include "ridge/core/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace ridge {
namespace {

std::string LittleEndian64(uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(Crc32c(LittleEndian64(1)), 0xC514CFADU);
  EXPECT_EQ(Crc32c(LittleEndian64(24)), 0x4A65BFE4U);
  EXPECT_EQ(Crc32c("a"), 0xC1D04330U);
  EXPECT_EQ(Crc32c(""), 0U);
}

TEST(Crc32c, MasksAsTfrecordDoes) {
  EXPECT_EQ(MaskCrc32c(Crc32c("123456789")), 0xC78AB0E5U);
  EXPECT_EQ(MaskCrc32c(Crc32c(LittleEndian64(1))), 0x41DE7501U);
  EXPECT_EQ(MaskCrc32c(Crc32c("a")), 0x28E46E78U);
  EXPECT_EQ(MaskCrc32c(0), 0xA282EAD8U);
}

TEST(Crc32c, EqualsTheTablesAtEveryLengthAndSplit) {
  std::string data;
  for (int i = 0; i < 70; ++i) data.push_back(static_cast<char>(i * 37 + 11));
  for (size_t length = 0; length <= data.size(); ++length) {
    const std::string_view part = std::string_view(data).substr(0, length);
    const uint32_t whole = Crc32cByTable(part);
    EXPECT_EQ(Crc32c(part), whole) << length;
    for (size_t split = 0; split <= length; ++split)
      EXPECT_EQ(Crc32c(part.substr(split), Crc32c(part.substr(0, split))), whole) << split;
  }
}

TEST(Crc32c, OfTwoPiecesIsThatOfTheWhole) {
  std::string data;
  for (int i = 0; i < 5000; ++i) data.push_back(static_cast<char>(i * i + 7 * i));
  for (size_t split : {0, 1, 7, 8, 255, 256, 4095, 4999, 5000}) {
    const std::string_view first = std::string_view(data).substr(0, split);
    const std::string_view second = std::string_view(data).substr(split);
    EXPECT_EQ(JoinCrc32c(Crc32c(first), Crc32c(second), std::ssize(second)), Crc32c(data)) << split;
  }
}

}  // namespace
}  // namespace ridge
