#include "ridge/data/npz.h"

#include "ridge/data/npy.h"
#include "ridge/data/test_files.h"
#include "ridge/data/zip.h"

namespace ridge {
namespace {

// Written by numpy 1.26.4: savez_compressed(x=int16 [[-300,-299,-298],[-297,-296,-295]],
// y=int64 [1,0], s=float64 scalar 2.5, f=float16 ones (1,3) in Fortran order, b=bool [True,False]).
constexpr std::string_view kNumpyFile =
    "UEsDBBQAAAAIAAAAIQBMv7SeVAAAAIwAAAAFABQAeC5ucHkBABAAjAAAAAAAAABUAAAAAAAAAJvsF+obEMnIUMZQrZ"
    "6SWpxcpG6loG6TaaSuo6Cell9UUpSYF59flJIKEndLzClOBYoXZyQWpAL5GkY6CsaaOgq1CmQDriv/rv679u/6vxv/"
    "bv4DAFBLAwQUAAAACAAAACEAcfs5q0gAAACQAAAABQAUAHkubnB5AQAQAJAAAAAAAAAASAAAAAAAAACb7BfqGxDJyF"
    "DGUK2eklqcXKRupaBuk2mhrqOgnpZfVFKUmBefX5SSChJ3S8wpTgWKF2ckFqQC+RpGOpo6CrUKFAAuRgZUAABQSwME"
    "FAAAAAgAAAAhADW0OpNHAAAAiAAAAAUAFABzLm5weQEAEACIAAAAAAAAAEcAAAAAAAAAm+wX6hsQychQxlCtnpJanF"
    "ykbqWgbpNmoa6joJ6WX1RSlJgXn1+UkgoSd0vMKU4FihdnJBakAvkamjoKtQoUAS4GMGBxAABQSwMEFAAAAAgAAAAh"
    "AA/B1edKAAAAhgAAAAUAFABmLm5weQEAEACGAAAAAAAAAEoAAAAAAAAAm+wX6hsQychQxlCtnpJanFykbqWgbpNmpK"
    "6joJ6WX1RSlJgXn1+UkgoSd0vMKU4FihdnJBakAvkahjoKxpo6CrUKZAMuBhsQBABQSwMEFAAAAAgAAAAhAO4Zu11G"
    "AAAAggAAAAUAFABiLm5weQEAEACCAAAAAAAAAEYAAAAAAAAAm+wX6hsQychQxlCtnpJanFykbqWgXpNkqK6joJ6WX1"
    "RSlJgXn1+UkgoSd0vMKU4FihdnJBakAvkaRjqaOgq1ChQALkYGAFBLAQIUAxQAAAAIAAAAIQBMv7SeVAAAAIwAAAAF"
    "AAAAAAAAAAAAAACAAQAAAAB4Lm5weVBLAQIUAxQAAAAIAAAAIQBx+zmrSAAAAJAAAAAFAAAAAAAAAAAAAACAAYsAAA"
    "B5Lm5weVBLAQIUAxQAAAAIAAAAIQA1tDqTRwAAAIgAAAAFAAAAAAAAAAAAAACAAQoBAABzLm5weVBLAQIUAxQAAAAI"
    "AAAAIQAPwdXnSgAAAIYAAAAFAAAAAAAAAAAAAACAAYgBAABmLm5weVBLAQIUAxQAAAAIAAAAIQDuGbtdRgAAAIIAAA"
    "AFAAAAAAAAAAAAAACAAQkCAABiLm5weVBLBQYAAAAABQAFAP8AAACGAgAAAAA=";

std::string FromBase64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(kDigits.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count));
  }
  return bytes;
}

// A .npy file with this dictionary.
std::string Npy(const std::string& dictionary, const std::string& elements, int version = 1) {
  std::string bytes("\x93NUMPY");
  bytes += {static_cast<char>(version), '\0', static_cast<char>(dictionary.size()), '\0'};
  if (version > 1) bytes += {'\0', '\0'};
  return bytes + dictionary + elements;
}

class NpzTest : public testing::Test {
 protected:
  using Tensors = std::vector<NamedTensor>;

  Result<Tensors> Read(const std::string& bytes) { return ReadNpz(folder_.Write("a.npz", bytes)); }
  // An archive with one array x.
  Result<Tensors> ReadArray(const std::string& npy) { return Read(*MakeZip({{"x.npy", {npy}}})); }
  // Reading x fails as bad data with this message, after the path.
  void ExpectBadArray(const std::string& npy, const std::string& expected) {
    const auto tensors = ReadArray(npy);
    ASSERT_FALSE(tensors.ok());
    EXPECT_EQ(tensors.status().code(), ErrorCode::kInvalidData);
    EXPECT_EQ(Message(tensors), folder_.path() + "/a.npz('x.npy'): " + expected);
  }
  std::string Path(const std::string& name) { return folder_.path() + "/" + name; }

  TempFolder folder_;
};

TEST_F(NpzTest, ReadsWhatNumpyWrote) {
  const auto tensors = Read(FromBase64(kNumpyFile));
  ASSERT_TRUE(tensors.ok()) << Message(tensors);
  ASSERT_EQ(tensors->size(), 5U);
  const auto& [name, x] = (*tensors)[0];
  EXPECT_EQ(name, "x");
  EXPECT_EQ(x.type(), (TensorType{DType::kI16, {2, 3}}));
  EXPECT_EQ(x.at(0), -300);
  EXPECT_EQ(x.at(5), -295);
  EXPECT_EQ((*tensors)[1].second.type(), (TensorType{DType::kI64, {2}}));
  EXPECT_EQ((*tensors)[1].second.at(0), 1);
  EXPECT_EQ((*tensors)[2].second.type(), (TensorType{DType::kF64, {}}));
  EXPECT_EQ((*tensors)[2].second.at(0), 2.5);
  EXPECT_EQ((*tensors)[3].second.type(), (TensorType{DType::kF16, {1, 3}}));
  EXPECT_EQ((*tensors)[3].second.at(2), 1);
  EXPECT_EQ((*tensors)[4].second.type().dtype, DType::kBool);
}

TEST_F(NpzTest, ReadsBackWhatItWrote) {
  Tensors written;
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kI64, DType::kI32, DType::kU8,
                      DType::kI8, DType::kBool}) {
    Tensor tensor(TensorType{dtype, {3, 2}});
    for (int64_t i = 0; i < 6; ++i)
      StoreFromDouble(dtype, tensor.mutable_data(), i, static_cast<double>(i) - 2);
    written.emplace_back(DTypeName(dtype), tensor);
  }
  written.emplace_back("scalar", Tensor::Scalar(DType::kF32, 7));
  written.emplace_back("empty", Tensor(TensorType{DType::kF32, {0, 4}}));
  ASSERT_TRUE(WriteNpz(Path("w.npz"), written).ok());
  const auto read = ReadNpz(Path("w.npz"));
  ASSERT_TRUE(read.ok()) << Message(read);
  ASSERT_EQ(read->size(), written.size());
  for (size_t i = 0; i < written.size(); ++i) {
    EXPECT_EQ((*read)[i].first, written[i].first);
    EXPECT_TRUE((*read)[i].second.same_bits(written[i].second)) << written[i].first;
  }
}

TEST_F(NpzTest, WritesBf16AsF32) {
  ASSERT_TRUE(WriteNpz(Path("w.npz"), {{"a", Tensor::Scalar(DType::kBF16, 1.5)}}).ok());
  const auto read = ReadNpz(Path("w.npz"));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ((*read)[0].second.type().dtype, DType::kF32);
  EXPECT_EQ((*read)[0].second.at(0), 1.5);
}

TEST_F(NpzTest, WritesElementsAtAMultipleOf64) {
  for (const Dims& dims : {Dims{}, Dims{5}, Dims{1, 2, 3, 4, 5, 6, 7}})
    EXPECT_EQ(NpyHeader({DType::kF32, dims}).size() % 64, 0U);
  EXPECT_EQ(NpyHeader({DType::kF32, {5}}).substr(10, 57),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }");
}

TEST_F(NpzTest, SaysWhenItCannotWrite) {
  const Status status = WriteNpz("/no/such/folder/w.npz", {});
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
}

TEST_F(NpzTest, ReadsEveryVersionAndAnySpacing) {
  for (int version : {1, 2, 3}) {
    const auto tensors =
        ReadArray(Npy("{\"shape\":(2,),'fortran_order' : False,'descr':'|u1'}\n", "ab", version));
    ASSERT_TRUE(tensors.ok()) << Message(tensors);
    EXPECT_EQ((*tensors)[0].second.at(1), 'b');
  }
}

TEST_F(NpzTest, RefusesFortranOrder) {
  ExpectBadArray(Npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }", "abcd"),
                 "is in Fortran order, should be in C order. hint: "
                 "numpy.ascontiguousarray(array)");
}

TEST_F(NpzTest, RefusesOtherTypes) {
  for (const std::string type : {"<U5", ">f4", "<c8", "|O", "<V2"}) {
    ExpectBadArray(
        Npy("{'descr': '" + type + "', 'fortran_order': False, 'shape': (1,), }", "abcd"),
        "has dtype '" + type +
            "', should be one of little-endian f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1. hint: "
            "array.astype('float32') or .astype('int64')");
  }
}

TEST_F(NpzTest, RefusesAShapeThatIsNotItsBytes) {
  ExpectBadArray(Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "abcdefgh"),
                 "its header declares f32[3], 12 bytes, but 8 follow");
  ExpectBadArray(Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }", "a"),
                 "its header declares f32[1000000000000], 4000000000000 bytes, but 1 follow");
}

TEST_F(NpzTest, RefusesHeadersThatAreNoDictionaries) {
  for (const std::string text : {"", "{", "{}", "{'descr': '<f4'}", "[1]", "{'shape': (1, }",
                                 "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999"
                                 "999999,), }"}) {
    ExpectBadArray(
        Npy(text, "abcd"),
        "its .npy header should give descr, fortran_order and shape, it is: " + text.substr(0, 80));
  }
  ExpectBadArray("not numpy at all", "is not a .npy array: it does not begin with \\x93NUMPY");
  ExpectBadArray(Npy("", "", 9), "has .npy version 9, should be 1 to 3");
  ExpectBadArray("\x93NUM", "is cut off: 4 of 8 bytes of the .npy header are there");
}

TEST_F(NpzTest, RefusesNegativeAndOverflowingShapes) {
  const auto negative =
      ReadArray(Npy("{'descr': '|u1', 'fortran_order': False, 'shape': (-1,), }", ""));
  EXPECT_EQ(negative.status().code(), ErrorCode::kInvalidData);
  const auto huge = ReadArray(
      Npy("{'descr': '|u1', 'fortran_order': False, 'shape': (4294967296, 4294967296,), }", ""));
  EXPECT_EQ(huge.status().code(), ErrorCode::kInvalidData);
}

TEST_F(NpzTest, RefusesFilesThatAreNoArchives) {
  EXPECT_EQ(Message(Read("hello")),
            Path("a.npz") +
                ": is not a zip archive, or is cut off: there is no end record in its "
                "last 5 bytes");
  EXPECT_EQ(Message(ReadNpz("/no/such.npz")),
            "/no/such.npz: cannot open: No such file or directory");
}

TEST_F(NpzTest, SurvivesEveryCutAndEveryFlippedByte) {
  const std::string good = FromBase64(kNumpyFile);
  for (size_t bytes = 0; bytes < good.size(); ++bytes)
    EXPECT_EQ(Read(good.substr(0, bytes)).status().code(), ErrorCode::kInvalidData) << bytes;
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit : {0, 3, 7}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      const auto tensors = Read(bad);  // many bytes mean nothing to us; none may crash
      EXPECT_TRUE(tensors.ok() || tensors.status().code() == ErrorCode::kInvalidData) << at;
    }
  }
}

TEST_F(NpzTest, NoticesADamagedElement) {
  std::string archive = *MakeZip(
      {{"x.npy", {Npy("{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }", "abcd")}}});
  const size_t at = archive.find("abcd");
  archive[at] = 'z';
  const auto tensors = Read(archive);
  ASSERT_FALSE(tensors.ok());
  EXPECT_TRUE(
      Message(tensors).starts_with(Path("a.npz") + "('x.npy'): is damaged: its checksum is "))
      << Message(tensors);
}

TEST_F(NpzTest, RefusesWhatIsNoArrayAndNamesThatComeTwice) {
  EXPECT_EQ(Message(Read(*MakeZip({{"readme.txt", {"hello"}}}))),
            Path("a.npz") + ": holds 'readme.txt', should hold only .npy arrays");
  const std::string npy = Npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }", "a");
  EXPECT_EQ(Message(Read(*MakeZip({{"x.npy", {npy}}, {"x.npy", {npy}}}))),
            Path("a.npz") + ": holds 'x' twice");
}

class NpzSourceTest : public NpzTest {
 protected:
  Result<DataSplits> Open(const Tensors& tensors) {
    EXPECT_TRUE(WriteNpz(Path("d.npz"), tensors).ok());
    return OpenData("npz:" + Path("d.npz"));
  }
  Tensor Make(Dims dims) { return Tensor(TensorType{DType::kF32, std::move(dims)}); }
};

TEST_F(NpzSourceTest, SplitsByTheUsualNames) {
  for (const auto& [train, test] :
       {std::pair("x_train", "x_test"), std::pair("train_x", "test_x"), std::pair("x", "x_test")}) {
    const auto splits = Open({{train, Make({5, 2})}, {test, Make({3, 2})}});
    ASSERT_TRUE(splits.ok()) << Message(splits);
    EXPECT_EQ(splits->train->size(), 5);
    EXPECT_EQ(splits->test->size(), 3);
    EXPECT_EQ(splits->train->fields()[0].name, "x");
    EXPECT_EQ(splits->test->fields()[0].name, "x");
    EXPECT_EQ(splits->resident_bytes(), 8 * 2 * 4);
  }
}

TEST_F(NpzSourceTest, RefusesDifferentCounts) {
  EXPECT_EQ(Message(Open({{"x", Make({5, 2})}, {"y", Make({4})}})),
            "npz:" + Path("d.npz") +
                ": 'x' is f32[5,2], 'y' is f32[4]; the first dimension (samples) must be equal");
  EXPECT_EQ(Message(Open({{"x", Make({5, 2})}, {"lr", Make({})}})),
            "npz:" + Path("d.npz") + ": 'lr' is a single f32, a field needs one entry a sample");
}

TEST_F(NpzSourceTest, RefusesNoSamplesAndNoArrays) {
  EXPECT_EQ(Message(Open({{"x", Make({0, 2})}})),
            "npz:" + Path("d.npz") + ": holds 0 samples, at least 1 is needed");
  EXPECT_EQ(Message(Open({})), Path("d.npz") +
                                   ": holds no arrays to train on. hint: call them x and y, or "
                                   "x_train and y_train");
}

}  // namespace
}  // namespace ridge
