#include "ridge/onnx/file/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "onnx/onnx-ml.pb.h"
#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

using onnx::TensorProto;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorProto Proto(int data_type, std::vector<int64_t> dims, const std::string& raw = "") {
  TensorProto proto;
  proto.set_name("w");
  proto.set_data_type(data_type);
  for (const int64_t extent : dims) proto.add_dims(extent);
  if (!raw.empty()) proto.set_raw_data(raw);
  return proto;
}

template <typename T>
std::string Bytes(std::vector<T> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

std::vector<double> Numbers(const Result<Tensor>& tensor) {
  std::vector<double> numbers;
  if (!tensor.ok()) ADD_FAILURE() << tensor.status().message();
  for (int64_t i = 0; tensor.ok() && i < tensor->elements(); ++i) numbers.push_back(tensor->at(i));
  return numbers;
}

std::string Message(const TensorProto& proto) {
  const Result<Tensor> tensor = CopyTensor(proto, "");
  return tensor.ok() ? "" : tensor.status().message();
}

TEST(TakeTensor, AdoptsTheBytesOfTheMessage) {
  TensorProto proto = Proto(TensorProto::FLOAT, {256}, Bytes(std::vector<float>(256, 1.5F)));
  const void* before = proto.raw_data().data();
  ExternalFiles files("");
  const Result<Tensor> tensor = TakeTensor(proto, files);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->data(), before);
  EXPECT_TRUE(proto.raw_data().empty());
  EXPECT_EQ(tensor->at(255), 1.5);
}

TEST(TakeTensor, KeepsNoMemoryInTypedFields) {
  TensorProto proto = Proto(TensorProto::INT64, {100});
  for (int i = 0; i < 100; ++i) proto.add_int64_data(i);
  ExternalFiles files("");
  const Result<Tensor> tensor = TakeTensor(proto, files);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(proto.int64_data().Capacity(), 0);
  EXPECT_EQ(tensor->at(99), 99);
}

TEST(CopyTensor, ReadsTypedFields) {
  TensorProto f = Proto(TensorProto::FLOAT, {2});
  f.add_float_data(1), f.add_float_data(-2);
  EXPECT_THAT(Numbers(CopyTensor(f, "")), ElementsAre(1, -2));
  TensorProto d = Proto(TensorProto::DOUBLE, {});
  d.add_double_data(0.1);
  EXPECT_THAT(Numbers(CopyTensor(d, "")), ElementsAre(0.1));
  TensorProto i8 = Proto(TensorProto::INT8, {2});
  i8.add_int32_data(-1), i8.add_int32_data(127);
  EXPECT_THAT(Numbers(CopyTensor(i8, "")), ElementsAre(-1, 127));
  TensorProto half = Proto(TensorProto::FLOAT16, {1});
  half.add_int32_data(0x3E00);  // the bits of 1.5
  EXPECT_THAT(Numbers(CopyTensor(half, "")), ElementsAre(1.5));
  TensorProto b = Proto(TensorProto::BOOL, {2});
  b.add_int32_data(0), b.add_int32_data(256);
  EXPECT_THAT(Numbers(CopyTensor(b, "")), ElementsAre(0, 1));
}

TEST(CopyTensor, ReadsHalfPrecisionBytes) {
  EXPECT_THAT(Numbers(CopyTensor(Proto(TensorProto::FLOAT16, {1}, Bytes<uint16_t>({0xC000})), "")),
              ElementsAre(-2));
  EXPECT_THAT(Numbers(CopyTensor(Proto(TensorProto::BFLOAT16, {1}, Bytes<uint16_t>({0x3FC0})), "")),
              ElementsAre(1.5));
}

TEST(CopyTensor, MakesBoolsZeroOrOne) {
  const Result<Tensor> tensor = CopyTensor(Proto(TensorProto::BOOL, {3}, {'\0', '\2', '\1'}), "");
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(std::memcmp(tensor->data(), "\0\1\1", 3), 0);
}

// Types that core may lack are tested once it has them.
bool Held(int data_type) { return DTypeFromOnnx(data_type).has_value(); }

TEST(CopyTensor, UnpacksSmallNumbersFromTheLowBitsUp) {
  const std::string raw = {'\x9F', '\x07'};
  EXPECT_THAT(Numbers(CopyTensor(Proto(TensorProto::UINT4, {3}, raw), "")), ElementsAre(15, 9, 7));
  EXPECT_THAT(Numbers(CopyTensor(Proto(TensorProto::INT4, {3}, raw), "")), ElementsAre(-1, -7, 7));
  const std::string two = {'\xE4'};
  EXPECT_THAT(Numbers(CopyTensor(Proto(TensorProto::UINT2, {4}, two), "")),
              ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Numbers(CopyTensor(Proto(TensorProto::INT2, {4}, two), "")),
              ElementsAre(0, 1, -2, -1));
  EXPECT_THAT(Numbers(CopyTensor(Proto(TensorProto::FLOAT4E2M1, {2}, {'\x2A'}), "")),
              ElementsAre(-1, 1));
  TensorProto typed = Proto(TensorProto::INT4, {3});
  typed.add_int32_data(0x9F), typed.add_int32_data(0x07);
  EXPECT_THAT(Numbers(CopyTensor(typed, "")), ElementsAre(-1, -7, 7));
}

TEST(StoreTensor, IsTheInverseOfCopyTensor) {
  for (int type = 1; type <= TensorProto::INT2; ++type) {
    if (!Held(type)) continue;
    Tensor tensor(TensorType{*DTypeFromOnnx(type), {3}});
    for (int i = 0; i < 3; ++i)
      StoreFromDouble(tensor.type().dtype, tensor.mutable_data(), i, i == 2 ? 0 : 1);
    TensorProto proto;
    StoreTensor(tensor, "w", proto);
    EXPECT_EQ(proto.data_type(), type);
    const Result<Tensor> again = CopyTensor(proto, "");
    ASSERT_TRUE(again.ok()) << OnnxTypeName(type) << again.status().message();
    EXPECT_TRUE(again->same_bits(tensor)) << OnnxTypeName(type);
  }
}

TEST(CopyTensor, ComparesSizesBeforeItAllocates) {
  EXPECT_EQ(Message(Proto(TensorProto::FLOAT, {2, 3}, std::string(12, 'x'))),
            "tensor 'w': holds 12 bytes; FLOAT[2,3] needs 24");
  EXPECT_EQ(Message(Proto(TensorProto::FLOAT, {1 << 20, 1 << 20})),
            "tensor 'w': holds 0 numbers; FLOAT[1048576,1048576] needs 1099511627776");
  TensorProto many = Proto(TensorProto::INT32, {1});
  many.add_int32_data(1), many.add_int32_data(2);
  EXPECT_EQ(Message(many), "tensor 'w': holds 2 numbers; INT32[1] needs 1");
}

TEST(CopyTensor, RefusesShapesThatOverflow) {
  EXPECT_THAT(Message(Proto(TensorProto::FLOAT, {int64_t{1} << 40, int64_t{1} << 40})),
              HasSubstr("more than 2^48 elements"));
  EXPECT_THAT(Message(Proto(TensorProto::FLOAT, {-1})), HasSubstr("negative extent -1"));
  EXPECT_THAT(Message(Proto(TensorProto::FLOAT, std::vector<int64_t>(17, 1))),
              HasSubstr("has 17 dimensions"));
}

TEST(CopyTensor, NamesTypesThatWeDoNotHold) {
  EXPECT_EQ(Message(Proto(TensorProto::STRING, {1})),
            "tensor 'w': its element type is STRING, which we do not hold");
  EXPECT_EQ(Message(Proto(TensorProto::COMPLEX64, {1})),
            "tensor 'w': its element type is COMPLEX64, which we do not hold");
  EXPECT_EQ(Message(Proto(0, {1})), "tensor 'w': its element type is 0; ONNX knows 1 to 28");
  EXPECT_EQ(Message(Proto(99, {1})), "tensor 'w': its element type is 99; ONNX knows 1 to 28");
}

TEST(CopyTensor, RefusesSegments) {
  TensorProto proto = Proto(TensorProto::FLOAT, {1}, "1234");
  proto.mutable_segment()->set_begin(0);
  EXPECT_THAT(Message(proto), HasSubstr("is a segment"));
}

class ExternalTensor : public ::testing::Test {
 protected:
  ExternalTensor() {
    std::ofstream file(TestFolder() + "/w.bin");
    file << Bytes<float>({1, 2, 3, 4}) << "x";
  }
  static TensorProto External(std::vector<std::pair<std::string, std::string>> entries) {
    TensorProto proto = Proto(TensorProto::FLOAT, {2});
    proto.set_data_location(TensorProto::EXTERNAL);
    for (const auto& [key, value] : entries) {
      auto& entry = *proto.add_external_data();
      entry.set_key(key), entry.set_value(value);
    }
    return proto;
  }
  static std::string Refusal(std::vector<std::pair<std::string, std::string>> entries) {
    const Result<Tensor> tensor = CopyTensor(External(std::move(entries)), TestFolder());
    return tensor.ok() ? "" : tensor.status().message();
  }
};

TEST_F(ExternalTensor, BeginsWhereItsOffsetSays) {
  ExternalFiles files(TestFolder());
  TensorProto first = External({{"location", "w.bin"}, {"offset", "0"}, {"length", "8"}});
  TensorProto second = External({{"location", "w.bin"}, {"offset", "8"}});
  const Result<Tensor> a = TakeTensor(first, files), b = TakeTensor(second, files);
  EXPECT_THAT(Numbers(a), ElementsAre(1, 2));
  EXPECT_THAT(Numbers(b), ElementsAre(3, 4));
}

TEST_F(ExternalTensor, MayLieAtAnyByte) {
  const Result<Tensor> tensor =
      CopyTensor(External({{"location", "w.bin"}, {"offset", "9"}, {"length", "8"}}), TestFolder());
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor->data()) % 4, 0u);
}

TEST_F(ExternalTensor, IgnoresKeysThatItDoesNotKnow) {
  EXPECT_EQ(Refusal({{"location", "w.bin"}, {"checksum", "?"}, {"__class__", "x"}}), "");
}

TEST_F(ExternalTensor, RefusesWhatItCannotRead) {
  EXPECT_EQ(Refusal({{"offset", "0"}}), "tensor 'w': its external data has no 'location'");
  EXPECT_EQ(Refusal({{"location", "w.bin"}, {"offset", "-4"}}),
            "tensor 'w': 'offset' of its external data is '-4'; it must be a number of bytes");
  EXPECT_THAT(Refusal({{"location", "w.bin"}, {"length", "99999999999999999999"}}),
              HasSubstr("'length' of its external data is '99999999999999999999'"));
  EXPECT_EQ(Refusal({{"location", "w.bin"}, {"offset", "16"}}),
            "tensor 'w': needs 8 bytes from byte 16 of 'w.bin', which has 17");
  EXPECT_EQ(Refusal({{"location", "../w.bin"}}),
            "tensor 'w': external data '../w.bin': the path has '..'; it must stay in the model's "
            "folder");
}

onnx::SparseTensorProto Sparse(std::vector<int64_t> dims, std::vector<int64_t> indices,
                               std::vector<int64_t> index_dims) {
  onnx::SparseTensorProto proto;
  *proto.mutable_values() = Proto(TensorProto::FLOAT, {2}, Bytes<float>({5, 6}));
  *proto.mutable_indices() = Proto(TensorProto::INT64, std::move(index_dims), Bytes(indices));
  for (const int64_t extent : dims) proto.add_dims(extent);
  return proto;
}

TEST(DenseTensor, PutsValuesByFlatPlaceOrByIndex) {
  EXPECT_THAT(Numbers(DenseTensor(Sparse({2, 2}, {1, 2}, {2}))), ElementsAre(0, 5, 6, 0));
  EXPECT_THAT(Numbers(DenseTensor(Sparse({2, 2}, {0, 1, 1, 0}, {2, 2}))), ElementsAre(0, 5, 6, 0));
}

std::string SparseMessage(const onnx::SparseTensorProto& proto) {
  const Result<Tensor> tensor = DenseTensor(proto);
  return tensor.ok() ? "" : tensor.status().message();
}

TEST(DenseTensor, RefusesPlacesOutside) {
  EXPECT_EQ(SparseMessage(Sparse({2, 2}, {1, 4}, {2})),
            "sparse tensor 'w': value 1 lies outside of [2,2]");
  EXPECT_THAT(SparseMessage(Sparse({2, 2}, {-1, 0}, {2})), HasSubstr("value 0 lies outside"));
  EXPECT_THAT(SparseMessage(Sparse({2, 2}, {0, 2, 0, 0}, {2, 2})), HasSubstr("value 0 lies"));
  EXPECT_EQ(SparseMessage(Sparse({2, 2}, {1, 2, 3}, {3})),
            "sparse tensor 'w': its indices are i64[3]; they must be i64[2] or i64[2,2]");
}

TEST(DenseTensor, RefusesWhatWouldFillTheMemory) {
  EXPECT_THAT(SparseMessage(Sparse({1 << 20, 1 << 10}, {1, 2}, {2})),
              HasSubstr("has 4294967296 bytes when dense; at most 134217728 are allowed"));
}

}  // namespace
}  // namespace ridge
