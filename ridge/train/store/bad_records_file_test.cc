#include "ridge/train/store/bad_records_file.h"

#include <gtest/gtest.h>

#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

TEST(BadRecordsFile, ComesBack) {
  const TempFolder folder;
  const std::string path = folder.File("bad_records.jsonl");
  EXPECT_TRUE(ReadBadRecords(path)->empty());
  const std::vector<BadRecord> records = {{"a \"quoted\".jpg", "is\nempty"}, {"b.jpg", ""}};
  ASSERT_TRUE(WriteBadRecords(path, records).ok());
  EXPECT_EQ(*ReadBadRecords(path), records);
}

TEST(BadRecordsFile, NamesTheLineThatIsWrong) {
  const TempFolder folder;
  folder.Write("bad_records.jsonl", "{\"file\":\"a\",\"reason\":\"b\"}\n{\"file\":3}\n");
  const auto read = ReadBadRecords(folder.File("bad_records.jsonl"));
  EXPECT_NE(read.status().message().find("bad_records.jsonl: line 2 cannot be read: "),
            std::string::npos);
  EXPECT_EQ(read.status().code(), ErrorCode::kInvalidData);
}

}  // namespace
}  // namespace ridge
