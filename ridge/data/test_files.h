// What the tests of this folder share: files in a folder that goes away, and small data sets.
#pragma once
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "ridge/core/test_folder.h"
#include "ridge/data/memory_source.h"

namespace ridge {

inline std::string Gzip(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// An IDX file: magic number, extents, elements as they are.
inline std::string Idx(uint32_t magic, const std::vector<uint32_t>& extents,
                       const std::string& elements) {
  std::string bytes;
  const auto add = [&](uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
  };
  add(magic);
  for (uint32_t extent : extents) add(extent);
  return bytes + elements;
}

// "\0\1\2..." of `count` bytes, modulo 251.
inline std::string Counting(int64_t count) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(i % 251));
  return bytes;
}

// `samples` images u8[2,2] holding 4 * s + 0..3 and labels u8[] holding s modulo 10.
inline SourcePtr CountingSource(int64_t samples) {
  Tensor images(TensorType{DType::kU8, {samples, 2, 2}});
  Tensor labels(TensorType{DType::kU8, {samples}});
  for (int64_t i = 0; i < 4 * samples; ++i)
    images.as_mutable<uint8_t>()[i] = static_cast<uint8_t>(i);
  for (int64_t i = 0; i < samples; ++i)
    labels.as_mutable<uint8_t>()[i] = static_cast<uint8_t>(i % 10);
  std::vector<NamedTensor> fields;
  fields.emplace_back("image", std::move(images));
  fields.emplace_back("label", std::move(labels));
  return *MemorySource::Create("counting", std::move(fields));
}

// The status of a Result or Status that should have failed.
template <typename T>
std::string Message(const Result<T>& result) {
  return result.ok() ? "ok" : result.status().message();
}

}  // namespace ridge
