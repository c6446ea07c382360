#include "ridge/plan/hardware/decoders.h"

#include <algorithm>

#include "ridge/plan/hardware/decoder_list.h"
#include "ridge/plan/hardware/embedded_list.h"

namespace ridge {
namespace {

constexpr const char* kHost = "host";
constexpr double kRatedPixels = 1920.0 * 1080.0;

struct Codec {
  const char* name;
  std::optional<double> DecoderRow::*fps;
};
constexpr Codec kCodecs[] = {{"h264", &DecoderRow::h264_fps},
                             {"hevc", &DecoderRow::hevc_fps},
                             {"vp9", &DecoderRow::vp9_fps},
                             {"av1", &DecoderRow::av1_fps},
                             {"jpeg", &DecoderRow::jpeg_fps}};

DecoderRow RowOf(const toml::table& table) {
  DecoderRow row;
  row.devices = ListAt(table, "devices");
  row.engines = table["engines"].value<int64_t>().value_or(1);
  for (const Codec& codec : kCodecs)
    row.*codec.fps = table[std::string(codec.name) + "_fps"].value<double>();
  row.source = TextAt(table, "source");
  return row;
}

const DecoderRow* FindRow(const std::string& device) {
  for (const DecoderRow& row : DecoderRows()) {
    if (std::find(row.devices.begin(), row.devices.end(), device) != row.devices.end()) return &row;
  }
  return nullptr;
}

// Decoders work through blocks of pixels, so a picture takes as long as it has pixels.
std::optional<Decoding> DecodingBy(const DecoderRow* row, const EncodedPictures& pictures,
                                   int64_t engines) {
  if (row == nullptr) return std::nullopt;
  const auto* codec = std::find_if(std::begin(kCodecs), std::end(kCodecs), [&](const Codec& known) {
    return known.name == pictures.codec;
  });
  if (codec == std::end(kCodecs) || !(row->*codec->fps)) return std::nullopt;
  const double pixels = static_cast<double>(pictures.width) * static_cast<double>(pictures.height);
  return Decoding{pixels / kRatedPixels / *(row->*codec->fps), engines, row->source};
}

}  // namespace

const std::vector<DecoderRow>& DecoderRows() {
  static const std::vector<DecoderRow> all =
      ReadEmbeddedList(kDecoderList, "decoders.toml", "decoder", RowOf);
  return all;
}

const std::vector<std::string>& KnownCodecs() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Codec& codec : kCodecs) all.emplace_back(codec.name);
    return all;
  }();
  return names;
}

std::optional<Decoding> FindDecoding(const std::string& device, const EncodedPictures& pictures) {
  if (const DecoderRow* row = FindRow(device); row != nullptr) {
    if (auto decoding = DecodingBy(row, pictures, row->engines)) return decoding;
  }
  return DecodingBy(FindRow(kHost), pictures, /*engines=*/0);
}

}  // namespace ridge
