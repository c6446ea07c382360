// SHA-256 (FIPS 180-4), incremental: the fingerprint of a run's parameters.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace ridge {

class Sha256 {
 public:
  void Add(const void* data, int64_t bytes);
  void Add(std::string_view text) { Add(text.data(), static_cast<int64_t>(text.size())); }

  // 64 lowercase hexadecimal digits of all that was added.  Further Add() calls go on from there.
  std::string Hex() const;

 private:
  void AddBlocks(const uint8_t* data, int64_t blocks);

  std::array<uint32_t, 8> state_ = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                                    0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};
  std::array<uint8_t, 64> block_{};  // the first total_bytes_ % 64 bytes wait for more
  int64_t total_bytes_ = 0;
};

std::string Sha256Hex(std::string_view text);

}  // namespace ridge
