// Base64 (RFC 4648, with padding): bytes of large tensors inside a text.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ridge {

std::string EncodeBase64(std::span<const uint8_t> bytes);

// nullopt when `text` is not what EncodeBase64 writes for some bytes.
std::optional<std::vector<uint8_t>> DecodeBase64(std::string_view text);

}  // namespace ridge
