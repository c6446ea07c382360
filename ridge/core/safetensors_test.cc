#include "ridge/core/safetensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>

#include "ridge/core/files.h"
#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

std::string TestPath(const std::string& name) { return TestFolder() + "/" + name + ".safetensors"; }

std::string FileText(uint64_t length, std::string_view header, std::string_view buffer) {
  std::string text(8, '\0');
  std::memcpy(text.data(), &length, 8);
  return text.append(header).append(buffer);
}

// Removes the old file first: ext4 flushes one that is truncated and written again.
void WriteNew(const std::string& path, std::string_view content) {
  ::unlink(path.c_str());
  std::ofstream(path, std::ios::binary) << content;
}

// A file with this header and a buffer of `bytes` zeros.
std::string WriteRaw(std::string_view header, size_t bytes) {
  const std::string path = TestPath("raw");
  WriteNew(path, FileText(header.size(), header, std::string(bytes, '\0')));
  return path;
}

// What Open says of a file with this header, without the path.
std::string Refusal(std::string_view header, size_t bytes,
                    ErrorCode code = ErrorCode::kInvalidData) {
  const std::string path = WriteRaw(header, bytes);
  const Result<SafetensorsFile> file = SafetensorsFile::Open(path);
  if (file.ok()) return "accepted";
  EXPECT_EQ(file.status().code(), code) << file.status().message();
  EXPECT_EQ(file.status().message().substr(0, path.size() + 2), path + ": ");
  return file.status().message().substr(path.size() + 2);
}

std::string RefusalOfFile(std::string_view content) {
  const std::string path = TestPath("raw");
  WriteNew(path, content);
  const Result<SafetensorsFile> file = SafetensorsFile::Open(path);
  return file.ok() ? "accepted" : file.status().message().substr(path.size() + 2);
}

SafetensorsFile MustOpen(const std::string& path) {
  Result<SafetensorsFile> file = SafetensorsFile::Open(path);
  RIDGE_CHECK(file.ok(), file.status().message());
  return std::move(*file);
}

std::vector<SafetensorsItem> Items(const std::vector<Tensor>& tensors) {
  std::vector<SafetensorsItem> items;
  for (size_t i = 0; i < tensors.size(); ++i)
    items.push_back({fmt::format("t{}", i), tensors[i].type(), tensors[i].data()});
  return items;
}

std::vector<Tensor> OneOfEachType() {
  std::vector<Tensor> tensors;
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64,
                            DType::kI32, DType::kU8, DType::kI8, DType::kBool}) {
    Tensor tensor(TensorType{dtype, {2, 3}});
    for (int i = 0; i < 6; ++i) StoreFromDouble(dtype, tensor.mutable_data(), i, i);
    tensors.push_back(tensor);
  }
  return tensors;
}

TEST(Safetensors, GivesBackEveryTypeBitForBit) {
  const std::string path = TestPath("types");
  const std::vector<Tensor> tensors = OneOfEachType();
  const auto written = WriteSafetensors(path, Items(tensors), {{"format", "pt"}});
  ASSERT_TRUE(written.ok()) << written.status().message();
  const SafetensorsFile file = MustOpen(path);
  EXPECT_EQ(file.metadata(), (SafetensorsMetadata{{"format", "pt"}}));
  ASSERT_EQ(file.entries().size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(file.entries()[i].name, fmt::format("t{}", i));  // the order given
    const Result<Tensor> mapped = file.Load(fmt::format("t{}", i));
    ASSERT_TRUE(mapped.ok()) << mapped.status().message();
    EXPECT_TRUE(mapped->same_bits(tensors[i]));
    Tensor read(file.entries()[i].type);
    ASSERT_TRUE(file.ReadInto(file.entries()[i], read.mutable_data()).ok());
    EXPECT_TRUE(read.same_bits(tensors[i]));
  }
}

TEST(Safetensors, WritesTheBytesTheFormatAsksFor) {
  const std::string path = TestPath("bytes");
  const Tensor x = Tensor::FromFloats({1}, std::vector<float>{1.0F});
  const std::vector<SafetensorsItem> items = {{"x\"y", x.type(), x.data()}};
  ASSERT_TRUE(WriteSafetensors(path, items).ok());
  const std::string header = R"({"x\"y":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(*ReadFile(path),
            FileText(padded.size(), padded, std::string_view("\x00\x00\x80\x3f", 4)));
}

TEST(Safetensors, BufferBeginsAtAMultipleOfEight) {
  for (size_t length = 1; length < 10; ++length) {
    const std::vector<SafetensorsEntry> entries = {{std::string(length, 'n'), TensorType{}, 0}};
    const auto header = PrintSafetensorsHeader(entries, {});
    ASSERT_TRUE(header.ok());
    EXPECT_EQ(header->size() % 8, 0U);
  }
}

TEST(Safetensors, DigestOfTheWriterIsThatOfTheFile) {
  const std::string path = TestPath("digest");
  const Tensor large(TensorType{DType::kU8, {3'000'001}});
  const std::vector<SafetensorsItem> items = {{"x", large.type(), large.data()}};
  const auto written = WriteSafetensors(path, items);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(written->size_bytes, static_cast<int64_t>(ReadFile(path)->size()));
  EXPECT_EQ(*ReadFileDigest(path), *written);
  std::string damaged = *ReadFile(path);
  damaged[2'000'000] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(path, damaged).ok());
  EXPECT_FALSE(*ReadFileDigest(path) == *written);
  EXPECT_FALSE(ReadFileDigest(path + ".none").ok());
}

TEST(Safetensors, TakesATensorInPieces) {
  const std::string path = TestPath("pieces");
  const std::vector<SafetensorsEntry> entries = {
      {"a", {DType::kU8, {3}}, 0}, {"none", {DType::kF32, {0, 7}}, 0}, {"b", {DType::kF32, {}}, 0}};
  auto writer = SafetensorsWriter::Create(path, entries);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Append("ab", 2).ok());
  ASSERT_TRUE(writer->Append("c\0\0\x80\x3f", 5).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const SafetensorsFile file = MustOpen(path);
  EXPECT_EQ(std::memcmp(file.Load("a")->data(), "abc", 3), 0);
  EXPECT_EQ(file.Load("none")->type(), (TensorType{DType::kF32, {0, 7}}));
  EXPECT_EQ(file.Load("b")->at(0), 1.0);  // at an odd offset, so it was copied
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file.Load("b")->data()) % 4, 0U);
  EXPECT_EQ(file.Load("c").status().message(), path + ": has no tensor 'c'");
}

TEST(Safetensors, TensorOutlivesItsFile) {
  const std::string path = TestPath("outlives");
  const Tensor x = Tensor::FromFloats({2}, std::vector<float>{1.0F, 2.0F});
  ASSERT_TRUE(WriteSafetensors(path, Items({x})).ok());
  Result<Tensor> mapped = MustOpen(path).Load("t0");
  ::unlink(path.c_str());
  EXPECT_TRUE(mapped->same_bits(x));
}

TEST(Safetensors, EmptyFileOfNoTensorsIsValid) {
  const std::string path = TestPath("none");
  ASSERT_TRUE(WriteSafetensors(path, {}).ok());
  EXPECT_TRUE(MustOpen(path).entries().empty());
}

TEST(Safetensors, RefusesNamesThatCannotBeRead) {
  const auto refusal = [](std::vector<std::string> names) {
    std::vector<SafetensorsEntry> entries;
    for (const std::string& name : names) entries.push_back({name, TensorType{}, 0});
    const auto writer = SafetensorsWriter::Create("/no/such/folder/f", entries);
    EXPECT_EQ(writer.status().code(), ErrorCode::kInvalidArgument);
    return writer.status().message();
  };
  EXPECT_EQ(refusal({"a", "b", "a"}), "/no/such/folder/f: tensor 'a' occurs twice");
  EXPECT_EQ(refusal({""}), "/no/such/folder/f: '' can't be the name of a tensor");
  EXPECT_EQ(refusal({"__metadata__"}),
            "/no/such/folder/f: '__metadata__' can't be the name of a tensor");
  EXPECT_EQ(refusal({"\xff"}),
            "/no/such/folder/f: a tensor's name or a metadata text is not UTF-8");
}

TEST(Safetensors, FullDiskLeavesNoFile) {
  const std::string path = TestPath("full");
  const Tensor x(TensorType{DType::kF32, {4096}});
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{5000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  const auto written = WriteSafetensors(path, Items({x}));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(written.status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(written.status().message(), path + ": cannot write: File too large");
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

TEST(Safetensors, UnfinishedFileIsRemoved) {
  const std::string path = TestPath("unfinished");
  {
    const std::vector<SafetensorsEntry> entries = {{"a", {DType::kU8, {3}}, 0}};
    auto writer = SafetensorsWriter::Create(path, entries);
    ASSERT_TRUE(writer.ok());
    EXPECT_EQ(::access(path.c_str(), F_OK), 0);
    EXPECT_THROW((void)writer->Append("abcd", 4), Bug);
    EXPECT_THROW((void)writer->Finish(), Bug);
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

TEST(SafetensorsReader, ChecksTheLengthBeforeItAllocates) {
  EXPECT_EQ(RefusalOfFile("abc"), "has 3 bytes; a safetensors file has at least 8");
  EXPECT_EQ(RefusalOfFile(FileText(100'000'001, "{}", "")),
            "the header's length is 100000001; at most 100000000 is allowed");
  EXPECT_EQ(RefusalOfFile(FileText(~uint64_t{0}, "{}", "")),
            "the header's length is 18446744073709551615; at most 100000000 is allowed");
  EXPECT_EQ(RefusalOfFile(FileText(99'999'999, "{}", "")),
            "the header's length is 99999999; only 2 bytes follow");
  EXPECT_EQ(SafetensorsFile::Open("/dev/zero").status().message(),
            "/dev/zero: is not a regular file");
  EXPECT_EQ(SafetensorsFile::Open("/no/such").status().message(),
            "/no/such: cannot open: No such file or directory");
}

TEST(SafetensorsReader, ChecksTheJson) {
  EXPECT_EQ(Refusal("", 0), "the header does not begin with '{'");
  EXPECT_EQ(Refusal(" {}", 0), "the header does not begin with '{'");
  EXPECT_EQ(Refusal("[]", 0), "the header does not begin with '{'");
  EXPECT_EQ(Refusal("{", 0), "the header is not valid JSON at its byte 2");
  EXPECT_EQ(Refusal("{} x", 0), "the header is not valid JSON at its byte 4");
  EXPECT_EQ(Refusal("{\"\xff\":1}", 0), "the header is not valid JSON at its byte 3");
  EXPECT_EQ(Refusal("{}   ", 0), "accepted");
  EXPECT_EQ(Refusal(R"({"a":1})", 0), "'a' is 1; it must be an object");
  EXPECT_EQ(Refusal(R"({"a":[]})", 0), "'a' is a list; it must be an object");
  EXPECT_EQ(Refusal("{\"a\":" + std::string(100000, '['), 0),
            "'a' is a list; it must be an object");
}

TEST(SafetensorsReader, ChecksTheMetadata) {
  EXPECT_EQ(Refusal(R"({"__metadata__":{"k":1}})", 0), "__metadata__: 'k' is 1; it must be a text");
  EXPECT_EQ(Refusal(R"({"__metadata__":{"k":"1","k":"2"}})", 0), "__metadata__: 'k' occurs twice");
  EXPECT_EQ(Refusal(R"({"__metadata__":{},"__metadata__":{}})", 0), "__metadata__ occurs twice");
  EXPECT_EQ(Refusal(R"({"__metadata__":null})", 0), "'__metadata__' is null; it must be an object");
}

// A header of one tensor 'a'.
std::string One(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return fmt::format(R"({{"a":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape,
                     offsets);
}

TEST(SafetensorsReader, ChecksEachTensorsFields) {
  EXPECT_EQ(Refusal(One("\"F32\"", "[2]", "[0,8]"), 8), "accepted");
  EXPECT_EQ(Refusal(R"({"a":{"dtype":"F32","shape":[1]}})", 4),
            "tensor 'a': dtype, shape and two data_offsets are needed");
  EXPECT_EQ(Refusal(One("\"F32\"", "[1]", "[4]"), 4),
            "tensor 'a': dtype, shape and two data_offsets are needed");
  EXPECT_EQ(Refusal(One("\"F32\"", "[1]", "[0,4,8]"), 4),
            "tensor 'a': data_offsets has more than 2 numbers");
  EXPECT_EQ(Refusal(One("3", "[1]", "[0,4]"), 4), "tensor 'a': dtype can't be 3");
  EXPECT_EQ(Refusal(One("\"F33\"", "[1]", "[0,4]"), 4), "tensor 'a': unknown dtype 'F33'");
  EXPECT_EQ(Refusal(R"({"a":{"x":1}})", 4), "tensor 'a': unknown field 'x'");
  EXPECT_EQ(Refusal(R"({"a":{"shape":[],"shape":[]}})", 4), "tensor 'a': shape occurs twice");
  EXPECT_EQ(Refusal(One("\"F32\"", "[[1]]", "[0,4]"), 4),
            "tensor 'a': shape holds a list; it must hold whole numbers from 0 to 2^63");
}

TEST(SafetensorsReader, ChecksShapesAgainstOverflow) {
  EXPECT_EQ(Refusal(One("\"F32\"", "[-1]", "[0,4]"), 4),
            "tensor 'a': shape holds -1; it must hold whole numbers from 0 to 2^63");
  EXPECT_EQ(Refusal(One("\"F32\"", "[1.5]", "[0,4]"), 4),
            "tensor 'a': shape holds 1.5; it must hold whole numbers from 0 to 2^63");
  EXPECT_EQ(Refusal(One("\"F32\"", "[18446744073709551615]", "[0,4]"), 4),
            "tensor 'a': shape holds 18446744073709551615; it must hold whole numbers from 0 to "
            "2^63");
  EXPECT_EQ(Refusal(One("\"U8\"", "[4294967296,4294967296]", "[0,0]"), 0),
            "tensor 'a': shape [4294967296,4294967296] has more than 2^48 elements");
  EXPECT_EQ(Refusal(One("\"U8\"", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]"), 1),
            "tensor 'a': shape has more than 16 numbers");
}

TEST(SafetensorsReader, ChecksThatTensorsCoverTheBuffer) {
  EXPECT_EQ(Refusal(One("\"F32\"", "[2]", "[0,4]"), 4),
            "tensor 'a': data_offsets are [0,4]; f32[2] needs 8 bytes");
  EXPECT_EQ(Refusal(One("\"F32\"", "[2]", "[8,0]"), 8),
            "tensor 'a': data_offsets are [8,0]; f32[2] needs 8 bytes");
  EXPECT_EQ(Refusal(One("\"F32\"", "[1]", "[4,8]"), 8),
            "tensor 'a' begins at byte 4; it must begin at 0, where the buffer begins");
  EXPECT_EQ(Refusal(One("\"F32\"", "[1]", "[0,4]"), 5),
            "the tensors need 4 bytes after the header; the file has 5");
  EXPECT_EQ(Refusal(One("\"F32\"", "[2]", "[0,8]"), 7),
            "the tensors need 8 bytes after the header; the file has 7");
  const auto two = [](std::string_view name, std::string_view offsets) {
    return fmt::format(R"({{"{}":{{"dtype":"U8","shape":[2],"data_offsets":{}}},)"
                       R"("b":{{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}}})",
                       name, offsets);
  };
  EXPECT_EQ(Refusal(two("a", "[0,2]"), 4), "accepted");
  EXPECT_EQ(Refusal(two("a", "[1,3]"), 4),
            "tensor 'a' begins at byte 1; it must begin at 0, where the buffer begins");
  EXPECT_EQ(Refusal(two("a", "[4,6]"), 6),
            "tensor 'b' begins at byte 2; it must begin at 0, where the buffer begins");
  EXPECT_EQ(Refusal(two("a", "[2,4]"), 4),
            "tensor 'a' begins at byte 2; it must begin at 0, where the buffer begins");
  EXPECT_EQ(Refusal(two("b", "[0,2]"), 4), "tensor 'b' occurs twice");
}

TEST(SafetensorsReader, TakesTensorsInAnyOrderOfTheHeader) {
  const std::string path = WriteRaw(R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},)"
                                    R"("empty":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},)"
                                    R"("a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})",
                                    3);
  const SafetensorsFile file = MustOpen(path);
  ASSERT_EQ(file.entries().size(), 3U);
  EXPECT_EQ(file.entries()[0].name, "a");
  EXPECT_EQ(file.entries()[1].name, "empty");
  EXPECT_EQ(file.entries()[2].name, "b");
  EXPECT_EQ(file.Find("b")->offset_bytes, 1);
  EXPECT_EQ(file.Find("bb"), nullptr);
}

TEST(SafetensorsReader, SaysWhichTypesItLacks) {
  EXPECT_EQ(Refusal(One("\"F4\"", "[4]", "[0,2]"), 2, ErrorCode::kUnsupported),
            "tensor 'a': dtype F4 is not supported; supported are F64 F32 F16 BF16 I64 I32 I16 I8 "
            "U64 U32 U16 U8 BOOL F8_E4M3 F8_E4M3FNUZ F8_E5M2 F8_E5M2FNUZ F8_E8M0");
}

TEST(SafetensorsReader, MessagesHoldNothingATerminalObeys) {
  EXPECT_EQ(Refusal("{\"\\u001b[2J\":1}", 0), "'?[2J' is 1; it must be an object");
  EXPECT_EQ(Refusal("{\"" + std::string(500, 'n') + "\":1}", 0),
            "'" + std::string(100, 'n') + "...' is 1; it must be an object");
}

// Every cut and every flipped bit of a good file is refused or read: nothing else can happen.
TEST(SafetensorsReader, SurvivesEveryCutAndEveryFlippedBit) {
  const std::string path = TestPath("flip");
  ASSERT_TRUE(WriteSafetensors(path, Items(OneOfEachType()), {{"k", "v"}}).ok());
  const std::string good = *ReadFile(path);
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(RefusalOfFile(good.substr(0, length)), "accepted") << length;
  for (size_t bit = 0; bit < 8 * good.size(); bit += 3) {
    std::string damaged = good;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    (void)RefusalOfFile(damaged);
  }
}

}  // namespace
}  // namespace ridge
