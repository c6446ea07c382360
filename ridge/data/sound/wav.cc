// Chunks are walked until both are found; what follows the data is not looked at.  A chunk has an
// even number of bytes in the file, whatever its length says.  A writer into a pipe knows no length
// and writes 0xFFFFFFFF: then the data reach to the end of the file.
#include "ridge/data/sound/wav.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "ridge/data/sound/channels.h"

namespace ridge {
namespace {

constexpr uint32_t kUnknownLength = 0xFFFFFFFF;
constexpr int kPcm = 1, kFloat = 3, kExtensible = 0xFFFE;
constexpr int kMostChunks = 1000;

Status Bad(const std::string& what) { return Status(ErrorCode::kInvalidData, what); }

template <typename T>
T Little(const char* bytes) {
  T value;  // x86 is little-endian, as WAV is
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

struct Chunk {
  char name[5] = {};
  int64_t at = 0;      // of its name
  int64_t length = 0;  // of what follows the 8 bytes of name and length
  bool endless = false;

  int64_t body() const { return at + 8; }
  int64_t next() const { return body() + length + length % 2; }
  bool Is(const char* wanted) const { return std::strcmp(name, wanted) == 0; }
};

// Nothing at the end of the file.
Result<std::optional<Chunk>> ReadChunk(const SoundBytes& file, int64_t at) {
  char head[8];
  RIDGE_ASSIGN_OR_RETURN(const int64_t got, file.ReadAt(at, head));
  if (got < static_cast<int64_t>(sizeof head)) return std::optional<Chunk>();
  Chunk chunk;
  for (int i = 0; i < 4; ++i) chunk.name[i] = head[i] >= ' ' && head[i] <= '~' ? head[i] : '?';
  chunk.at = at;
  const auto length = Little<uint32_t>(head + 4);
  chunk.endless = length == kUnknownLength;
  chunk.length = length;
  return std::optional(chunk);
}

Status CheckInside(const SoundBytes& file, const Chunk& chunk) {
  if (chunk.body() + chunk.length <= file.size()) return Status();
  return Bad(fmt::format("chunk '{}' at byte {} has {} bytes, and {} follow: the file is cut off",
                         chunk.name, chunk.at, chunk.length, file.size() - chunk.body()));
}

struct Form {
  int tag = 0, channels = 0, block = 0, bits = 0;
  int64_t rate = 0;
};

Status CheckForm(const Form& form, int64_t at) {
  const auto bad = [&](const std::string& what) {
    return Bad(fmt::format("its fmt chunk at byte {} says {}", at, what));
  };
  if (form.tag != kPcm && form.tag != kFloat)
    return bad(fmt::format("format {}; PCM (1) and floats (3) are read", form.tag));
  const bool pcm = form.tag == kPcm && (form.bits == 8 || form.bits == 16 || form.bits == 24);
  const bool floats = form.tag == kFloat && form.bits == 64;
  if (!pcm && !floats && form.bits != 32) {
    return bad(fmt::format("{} bits a sample; {} are read", form.bits,
                           form.tag == kPcm ? "8, 16, 24 and 32" : "32 and 64"));
  }
  if (form.channels < 1 || form.channels > kMostSoundChannels)
    return bad(fmt::format("{} channels, at most {} are read", form.channels, kMostSoundChannels));
  if (form.rate < 1 || form.rate > kMostSoundRate)
    return bad(fmt::format("{} samples a second, 1 to {} are read", form.rate, kMostSoundRate));
  if (form.block != form.channels * form.bits / 8) {
    return bad(
        fmt::format("{} bytes for {} samples of {} bits", form.block, form.channels, form.bits));
  }
  return Status();
}

Result<Form> ReadForm(const SoundBytes& file, const Chunk& chunk) {
  constexpr int64_t kShort = 16, kLong = 40;
  RIDGE_RETURN_IF_ERROR(CheckInside(file, chunk));
  char body[kLong] = {};
  RIDGE_ASSIGN_OR_RETURN(
      const int64_t got,
      file.ReadAt(chunk.body(), {body, static_cast<size_t>(std::min(chunk.length, kLong))}));
  if (got < kShort)
    return Bad(fmt::format("its fmt chunk at byte {} has {} bytes, 16 are needed", chunk.at, got));
  Form form{Little<uint16_t>(body), Little<uint16_t>(body + 2), Little<uint16_t>(body + 12),
            Little<uint16_t>(body + 14), Little<uint32_t>(body + 4)};
  if (form.tag == kExtensible) {
    if (got < kLong) {
      return Bad(
          fmt::format("its fmt chunk at byte {} has {} bytes, 40 are needed", chunk.at, got));
    }
    form.tag = Little<uint16_t>(body + 24);  // the first bytes of the format's GUID
  }
  RIDGE_RETURN_IF_ERROR(CheckForm(form, chunk.at));
  return form;
}

Result<SoundHeader> HeaderOf(const SoundBytes& file, const Form& form, const Chunk& data) {
  int64_t bytes = data.length;
  if (data.endless) {
    bytes = file.size() - data.body();
  } else {
    RIDGE_RETURN_IF_ERROR(CheckInside(file, data));
  }
  SoundHeader header;
  header.rate = form.rate;
  header.channels = form.channels;
  header.bits = form.bits;
  header.is_float = form.tag == kFloat;
  header.frames = bytes / form.block;
  header.data_offset = data.body();
  if (header.frames < 1)
    return Bad(fmt::format("its data chunk at byte {} holds no sample", data.at));
  return header;
}

// ---- samples

float ToFloat(const char* sample, const SoundHeader& header) {
  if (header.is_float) {
    return header.bits == 32 ? Little<float>(sample) : static_cast<float>(Little<double>(sample));
  }
  switch (header.bits) {
    case 8:
      return static_cast<float>(static_cast<uint8_t>(*sample) - 128) * 0x1p-7F;
    case 16:
      return static_cast<float>(Little<int16_t>(sample)) * 0x1p-15F;
    case 24: {
      const uint32_t low = static_cast<uint8_t>(sample[0]), mid = static_cast<uint8_t>(sample[1]),
                     high = static_cast<uint8_t>(sample[2]);
      const auto value = static_cast<int32_t>(high << 24 | mid << 16 | low << 8);
      return static_cast<float>(value >> 8) * 0x1p-23F;
    }
    default:
      return static_cast<float>(Little<int32_t>(sample)) * 0x1p-31F;
  }
}

void ConvertFrames(const char* raw, int64_t count, const SoundHeader& header, int channel,
                   float* out) {
  const int64_t width = header.bits / 8, stride = header.frame_bytes();
  if (header.channels == 1 && header.bits == 16) {
    for (int64_t i = 0; i < count; ++i)
      out[i] = static_cast<float>(Little<int16_t>(raw + 2 * i)) * 0x1p-15F;
    return;
  }
  MixChannels(count, header.channels, channel, out, [&](int64_t frame, int of) {
    return ToFloat(raw + frame * stride + of * width, header);
  });
}

// A file of floats may hold what is no number.
Status CheckFinite(const SoundHeader& header, int64_t first, int64_t count, const float* out) {
  if (!header.is_float) return Status();
  for (int64_t i = 0; i < count; ++i) {
    if (std::isfinite(out[i])) continue;
    return Bad(fmt::format("sample {} at byte {} is {}", first + i,
                           header.data_offset + (first + i) * header.frame_bytes(),
                           std::isnan(out[i]) ? "NaN" : "infinite"));
  }
  return Status();
}

}  // namespace

bool BeginsAsWav(std::span<const char> start) {
  return start.size() >= 12 && std::memcmp(start.data(), "RIFF", 4) == 0 &&
         std::memcmp(start.data() + 8, "WAVE", 4) == 0;
}

Result<SoundHeader> ReadWavHeader(const SoundBytes& file) {
  std::optional<Form> form;
  int64_t at = 12;
  for (int i = 0; i < kMostChunks; ++i) {
    RIDGE_ASSIGN_OR_RETURN(const auto chunk, ReadChunk(file, at));
    if (!chunk) {
      return Bad(fmt::format("has no {} chunk before it ends at byte {}", form ? "data" : "fmt",
                             file.size()));
    }
    if (chunk->Is("data")) {
      if (form) return HeaderOf(file, *form, *chunk);
      return Bad(fmt::format("has no fmt chunk before its data chunk at byte {}", chunk->at));
    }
    RIDGE_RETURN_IF_ERROR(CheckInside(file, *chunk));
    if (chunk->Is("fmt ")) {
      RIDGE_ASSIGN_OR_RETURN(form, ReadForm(file, *chunk));
    }
    at = chunk->next();
  }
  return Bad(fmt::format("has more than {} chunks before its data", kMostChunks));
}

Status ReadWavFrames(const SoundBytes& file, const SoundHeader& header, int64_t first,
                     int64_t count, int channel, std::span<char> scratch, float* out) {
  const int64_t bytes = header.frame_bytes();
  const int64_t most = static_cast<int64_t>(scratch.size()) / bytes;
  for (int64_t done = 0; done < count;) {
    const int64_t frames = std::min(most, count - done);
    const int64_t at = header.data_offset + (first + done) * bytes;
    RIDGE_ASSIGN_OR_RETURN(const int64_t got,
                           file.ReadAt(at, scratch.first(static_cast<size_t>(frames * bytes))));
    if (got < frames * bytes)
      return Bad(fmt::format("ends at byte {}, inside its data: it has changed", at + got));
    ConvertFrames(scratch.data(), frames, header, channel, out + done);
    RIDGE_RETURN_IF_ERROR(CheckFinite(header, first + done, frames, out + done));
    done += frames;
  }
  return Status();
}

}  // namespace ridge
