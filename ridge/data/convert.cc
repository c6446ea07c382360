// u8 -> f32 has its own loop, since images are nearly all that is converted here: blocks of a fixed
// length, which the compiler turns into vector code at -O2.  It divides to give the bits of x / 255
// in numpy (x * (1 / 255) differs for 126 of the 256 values).  Measured: two exact products and a
// sum in place of the division gain nothing; a batch of 128 shuffled images of 28x28 takes 80 us
// either way (28 us in order: the rest is the permutation and scattered reads).
//
// Pixels that are normalized, or whose channels become planes, go through a table of their 256
// values: the bits of two divisions for the price of a load.  Measured for a picture of 224x224: 40
// us, 60 us when the channels are gathered and divided.
//
// What becomes 16 bits becomes f32 first, a block at a time.  All other pairs go through doubles,
// which hold every value exactly except i64 beyond 2^53, and i64 -> i64 is a copy.
#include "ridge/data/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "ridge/core/reduced_floats.h"

namespace ridge {
namespace {

constexpr int64_t kBlock = 256;  // elements on the stack

Dims Squeezed(const Dims& dims) {
  Dims squeezed;
  for (int64_t extent : dims) {
    if (extent != 1) squeezed.push_back(extent);
  }
  return squeezed;
}

// Before which dimensions the last one may move to make `to`; two stay behind it, [H,W].
std::vector<size_t> PlacesOfChannels(const Dims& from, const Dims& to) {
  std::vector<size_t> places;
  if (from.size() < 3 || to.size() != from.size() || from == to || from.back() <= 1) return places;
  for (size_t place = 0; place + 2 < from.size(); ++place) {
    Dims moved(from.begin(), from.end() - 1);
    moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(place), from.back());
    if (moved == to) places.push_back(place);
  }
  return places;
}

bool IsSameOrder(const Dims& from, const Dims& to) {
  return from.size() <= 1 || to.size() <= 1 || Squeezed(from) == Squeezed(to);
}

void ConvertPixels(const uint8_t* __restrict from, float* __restrict to, int64_t count) {
  constexpr int64_t kVector = 32;
  int64_t i = 0;
  for (; i + kVector <= count; i += kVector) {
    for (int64_t j = 0; j < kVector; ++j) to[i + j] = static_cast<float>(from[i + j]) / 255.0F;
  }
  for (; i < count; ++i) to[i] = static_cast<float>(from[i]) / 255.0F;
}

void ReduceFloats(DType dtype, const float* from, int64_t count, void* to) {
  auto* reduced = static_cast<uint16_t*>(to);
  dtype == DType::kBF16 ? FloatsToBF16(from, reduced, count) : FloatsToF16(from, reduced, count);
}

void ConvertBlock(const Conversion& conversion, const void* from, void* to, int64_t count) {
  std::array<double, kBlock> values;
  ConvertToDouble(conversion.from, from, values.data(), count);
  if (conversion.divide_by_255) {
    for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] /= 255;
  }
  if (!Is16BitFloat(conversion.to))
    return ConvertFromDouble(conversion.to, values.data(), to, count);
  std::array<float, kBlock> floats;
  ConvertFromDouble(DType::kF32, values.data(), floats.data(), count);
  ReduceFloats(conversion.to, floats.data(), count, to);
}

// Elements that are neighbours on both sides.  REQUIRES: `from` is aligned for its type.
void ConvertRun(const Conversion& conversion, const char* from, char* to, int64_t count) {
  if (conversion.from == conversion.to) {
    std::memcpy(to, from, static_cast<size_t>(count * BytesPerElement(conversion.from)));
    return;
  }
  if (conversion.divide_by_255 && conversion.to == DType::kF32) {
    ConvertPixels(reinterpret_cast<const uint8_t*>(from), reinterpret_cast<float*>(to), count);
    return;
  }
  if (conversion.from == DType::kF32 && Is16BitFloat(conversion.to))
    return ReduceFloats(conversion.to, reinterpret_cast<const float*>(from), count, to);
  for (int64_t i = 0; i < count; i += kBlock) {
    ConvertBlock(conversion, from + i * BytesPerElement(conversion.from),
                 to + i * BytesPerElement(conversion.to), std::min(kBlock, count - i));
  }
}

// As many elements as make whole pixels fill most of a block.
int64_t BlockOfPixels(int64_t channels) { return kBlock / channels * channels; }

// `count` pixels of [count, channels] through the table; with `planes` into [channels, planes].
template <class T>
void LookUp(const std::vector<T>& table, int64_t channels, const uint8_t* from, int64_t count,
            int64_t planes, T* to) {
  const int64_t step = planes > 0 ? 1 : channels, plane = planes > 0 ? planes : 1;
  for (int64_t c = 0; c < channels; ++c) {
    const T* values = table.data() + c * 256;
    for (int64_t i = 0; i < count; ++i) to[c * plane + i * step] = values[from[i * channels + c]];
  }
}

// (x / 255 - mean) / std of `pixels` pixels.
void ConvertNormalized(const Conversion& conversion, const uint8_t* from, int64_t pixels,
                       char* to) {
  const int64_t channels = conversion.pixel_channels;
  const int64_t planes = conversion.channels > 0 ? pixels : 0;
  if (conversion.to == DType::kF32)
    return LookUp(conversion.table, channels, from, pixels, planes, reinterpret_cast<float*>(to));
  if (Is16BitFloat(conversion.to))
    return LookUp(conversion.reduced_table, channels, from, pixels, planes,
                  reinterpret_cast<uint16_t*>(to));
  std::array<float, kBlock> values;
  std::array<double, kBlock> wide;
  const int64_t to_bytes = BytesPerElement(conversion.to),
                block = BlockOfPixels(channels) / channels;
  for (int64_t i = 0; i < pixels; i += block) {
    const int64_t count = std::min(block, pixels - i);
    LookUp(conversion.table, channels, from + i * channels, count, planes > 0 ? count : 0,
           values.data());
    ConvertToDouble(DType::kF32, values.data(), wide.data(), count * channels);
    for (int64_t c = 0; planes > 0 && c < channels; ++c)
      ConvertFromDouble(conversion.to, wide.data() + c * count, to + (c * planes + i) * to_bytes,
                        count);
    if (planes == 0)
      ConvertFromDouble(conversion.to, wide.data(), to + i * channels * to_bytes, count * channels);
  }
}

// Brings `count` elements of kBytes, `stride` elements apart, side by side.
template <size_t kBytes>
void Gather(const char* from, int64_t stride, int64_t count, char* to) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * static_cast<int64_t>(kBytes),
                from + i * stride * static_cast<int64_t>(kBytes), kBytes);
}

void GatherBytes(int64_t bytes, const char* from, int64_t stride, int64_t count, char* to) {
  if (bytes == 1) return Gather<1>(from, stride, count, to);
  if (bytes == 2) return Gather<2>(from, stride, count, to);
  if (bytes == 4) return Gather<4>(from, stride, count, to);
  Gather<8>(from, stride, count, to);
}

// Element (i, c) of `from` [pixels, channels] is element (c, i) of `to`; channels = 1 only aligns.
void ConvertGathered(const Conversion& conversion, int64_t channels, int64_t pixels,
                     const char* from, char* to) {
  alignas(8) std::array<char, kBlock * 8> block;
  const int64_t from_bytes = BytesPerElement(conversion.from);
  const int64_t to_bytes = BytesPerElement(conversion.to);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < pixels; i += kBlock) {
      const int64_t count = std::min(kBlock, pixels - i);
      GatherBytes(from_bytes, from + (i * channels + c) * from_bytes, channels, count,
                  block.data());
      ConvertRun(conversion, block.data(), to + (c * pixels + i) * to_bytes, count);
    }
  }
}

// Pixels that are looked up, or whose channels become planes.
void ConvertBlocks(const Conversion& conversion, const char* from, char* to) {
  const bool looks_up = !conversion.table.empty();
  const int64_t channels = looks_up ? conversion.pixel_channels : conversion.channels;
  const int64_t elements = conversion.elements / conversion.blocks, pixels = elements / channels;
  for (int64_t block = 0; block < conversion.blocks; ++block) {
    const char* source = from + block * elements * BytesPerElement(conversion.from);
    char* target = to + block * elements * BytesPerElement(conversion.to);
    if (looks_up)
      ConvertNormalized(conversion, reinterpret_cast<const uint8_t*>(source), pixels, target);
    else
      ConvertGathered(conversion, channels, pixels, source, target);
  }
}

bool IsAligned(const void* data, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes) == 0;
}

Status BadNormalization(const std::string& reason) {
  return Status(ErrorCode::kInvalidData, reason);
}

// What each byte of each channel becomes.
Status MakeTable(const TensorType& from, const TensorType& to,
                 const PixelNormalization& normalization, Conversion& conversion) {
  const auto count = static_cast<int64_t>(normalization.mean.size());
  const int64_t channels = from.dims.size() >= 3 ? from.dims.back() : 1;
  if (from.dtype != DType::kU8 || !IsFloat(to.dtype))
    return BadNormalization("pixels are normalized from u8 to floats");
  if (count != 1 && count != channels) {
    return BadNormalization(
        fmt::format("is normalized by {} means, it has {} channels", count, channels));
  }
  conversion.pixel_channels = count == 1 && conversion.channels == 0 ? 1 : channels;
  for (int64_t c = 0; c < conversion.pixel_channels; ++c) {
    const auto at = static_cast<size_t>(count == 1 ? 0 : c);
    const auto mean = static_cast<float>(normalization.mean[at]);
    const auto std = static_cast<float>(normalization.std[at]);
    for (int x = 0; x < 256; ++x)
      conversion.table.push_back((static_cast<float>(x) / 255.0F - mean) / std);
  }
  if (!Is16BitFloat(to.dtype)) return Status();
  conversion.reduced_table.resize(conversion.table.size());
  ReduceFloats(to.dtype, conversion.table.data(), static_cast<int64_t>(conversion.table.size()),
               conversion.reduced_table.data());
  return Status();
}

}  // namespace

Result<Conversion> PlanConversion(const TensorType& from, const TensorType& to,
                                  const PixelNormalization& normalization) {
  if (from.elements() != to.elements()) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{} elements, {} are needed", from.elements(), to.elements()));
  }
  const std::vector<size_t> places = PlacesOfChannels(from.dims, to.dims);
  if (places.size() > 1) {
    return Status(
        ErrorCode::kInvalidData,
        fmt::format("{} becomes {} in two ways: {} frames of {} channels", DimsToString(from.dims),
                    DimsToString(to.dims), from.dims.front(), from.dims.back()));
  }
  const bool is_image = !places.empty();
  if (!is_image && !IsSameOrder(from.dims, to.dims)) {
    return Status(
        ErrorCode::kInvalidData,
        fmt::format("{} cannot become {}", DimsToString(from.dims), DimsToString(to.dims)));
  }
  Conversion conversion;
  conversion.from = from.dtype;
  conversion.to = to.dtype;
  conversion.elements = from.elements();
  conversion.channels = is_image ? from.dims.back() : 0;
  for (size_t i = 0; is_image && i < places.front(); ++i) conversion.blocks *= from.dims[i];
  conversion.divide_by_255 = from.dtype == DType::kU8 && IsFloat(to.dtype) && from.elements() > 1;
  if (!normalization.empty()) RIDGE_RETURN_IF_ERROR(MakeTable(from, to, normalization, conversion));
  // The bits of the division: (x / 255 - 0) / 1.
  const bool planes = conversion.channels > 0 && to.dtype == DType::kF32;
  if (normalization.empty() && conversion.divide_by_255 && (planes || Is16BitFloat(to.dtype)))
    RIDGE_RETURN_IF_ERROR(MakeTable(from, to, {{0}, {1}}, conversion));
  return conversion;
}

void Convert(const Conversion& conversion, const void* from, void* to) {
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  if (!conversion.table.empty() || conversion.channels > 0)
    return ConvertBlocks(conversion, source, target);
  const bool is_ready = conversion.is_copy() || IsAligned(from, BytesPerElement(conversion.from));
  if (is_ready) return ConvertRun(conversion, source, target, conversion.elements);
  ConvertGathered(conversion, /*channels=*/1, conversion.elements, source, target);
}

}  // namespace ridge
