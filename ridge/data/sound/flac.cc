// The header is read here: STREAMINFO always comes first, and has one form (RFC 9639, 8.2).  The
// library then seeks to the first frame that is asked for and decodes block by block; each block
// must have the header's form, so that no block can make it write elsewhere.
//
// What the library finds damaged it conceals, and tells: here it ends the reading.
#include "ridge/data/sound/flac.h"

#include <FLAC/stream_decoder.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "ridge/data/sound/channels.h"

namespace ridge {
namespace {

constexpr int64_t kMostBlock = 65535;

Status Bad(const std::string& what) { return Status(ErrorCode::kInvalidData, what); }

// What the callbacks know.
struct Reading {
  const SoundBytes& file;
  const SoundHeader& header;
  int64_t position = 0;  // in the file
  int64_t next = 0;      // the frame that is wanted next
  int64_t end = 0;
  int channel = 0;
  float* out = nullptr;
  std::string error;  // the first

  void Fail(std::string what) {
    if (error.empty()) error = std::move(what);
  }
};

Reading& Of(void* data) { return *static_cast<Reading*>(data); }

FLAC__StreamDecoderReadStatus ReadBytes(const FLAC__StreamDecoder*, FLAC__byte to[], size_t* bytes,
                                        void* data) {
  Reading& reading = Of(data);
  const auto got = reading.file.ReadAt(reading.position, {reinterpret_cast<char*>(to), *bytes});
  if (!got.ok()) {
    reading.Fail(got.status().message());
    return FLAC__STREAM_DECODER_READ_STATUS_ABORT;
  }
  *bytes = static_cast<size_t>(*got);
  reading.position += *got;
  return *got == 0 ? FLAC__STREAM_DECODER_READ_STATUS_END_OF_STREAM
                   : FLAC__STREAM_DECODER_READ_STATUS_CONTINUE;
}

FLAC__StreamDecoderSeekStatus Seek(const FLAC__StreamDecoder*, FLAC__uint64 to, void* data) {
  Reading& reading = Of(data);
  if (to > static_cast<FLAC__uint64>(reading.file.size()))
    return FLAC__STREAM_DECODER_SEEK_STATUS_ERROR;
  reading.position = static_cast<int64_t>(to);
  return FLAC__STREAM_DECODER_SEEK_STATUS_OK;
}

FLAC__StreamDecoderTellStatus Tell(const FLAC__StreamDecoder*, FLAC__uint64* at, void* data) {
  *at = static_cast<FLAC__uint64>(Of(data).position);
  return FLAC__STREAM_DECODER_TELL_STATUS_OK;
}

FLAC__StreamDecoderLengthStatus Length(const FLAC__StreamDecoder*, FLAC__uint64* bytes,
                                       void* data) {
  *bytes = static_cast<FLAC__uint64>(Of(data).file.size());
  return FLAC__STREAM_DECODER_LENGTH_STATUS_OK;
}

FLAC__bool IsAtEnd(const FLAC__StreamDecoder*, void* data) {
  return Of(data).position >= Of(data).file.size();
}

FLAC__StreamDecoderWriteStatus Write(const FLAC__StreamDecoder*, const FLAC__Frame* block,
                                     const FLAC__int32* const samples[], void* data) {
  Reading& reading = Of(data);
  const SoundHeader& header = reading.header;
  const auto first = static_cast<int64_t>(block->header.number.sample_number);
  const auto count = static_cast<int64_t>(block->header.blocksize);
  if (block->header.channels != static_cast<uint32_t>(header.channels) ||
      block->header.bits_per_sample != static_cast<uint32_t>(header.bits)) {
    reading.Fail(
        fmt::format("its block at sample {} has another form than the header says", first));
    return FLAC__STREAM_DECODER_WRITE_STATUS_ABORT;
  }
  const int64_t end = std::min(first + count, reading.end);
  if (first > reading.next) {
    reading.Fail(fmt::format("samples {} to {} are missing", reading.next, first - 1));
    return FLAC__STREAM_DECODER_WRITE_STATUS_ABORT;
  }
  if (end <= reading.next) return FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE;
  const float scale = 1.0F / static_cast<float>(int64_t{1} << (header.bits - 1));
  const int64_t skipped = reading.next - first;
  MixChannels(
      end - reading.next, header.channels, reading.channel, reading.out,
      [&](int64_t i, int c) { return static_cast<float>(samples[c][skipped + i]) * scale; });
  reading.out += end - reading.next;
  reading.next = end;
  return FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE;
}

const char* WhatIsDamaged(FLAC__StreamDecoderErrorStatus status) {
  switch (status) {
    case FLAC__STREAM_DECODER_ERROR_STATUS_LOST_SYNC:
      return "a block does not end where the next one begins";
    case FLAC__STREAM_DECODER_ERROR_STATUS_BAD_HEADER:
      return "a block's header is wrong";
    case FLAC__STREAM_DECODER_ERROR_STATUS_FRAME_CRC_MISMATCH:
      return "a block's checksum is wrong";
    default:
      return "a block cannot be read";
  }
}

void TakeError(const FLAC__StreamDecoder*, FLAC__StreamDecoderErrorStatus status, void* data) {
  Reading& reading = Of(data);
  reading.Fail(fmt::format("its FLAC data is damaged before byte {}, at sample {} or later: {}",
                           reading.position, reading.next, WhatIsDamaged(status)));
}

struct DeleteDecoder {
  void operator()(FLAC__StreamDecoder* decoder) const { FLAC__stream_decoder_delete(decoder); }
};

Status Decode(Reading& reading, int64_t first) {
  const std::unique_ptr<FLAC__StreamDecoder, DeleteDecoder> decoder(FLAC__stream_decoder_new());
  if (decoder == nullptr) return Status(ErrorCode::kOutOfMemory, "no memory for a FLAC decoder");
  const auto initialized = FLAC__stream_decoder_init_stream(
      decoder.get(), ReadBytes, Seek, Tell, Length, IsAtEnd, Write, nullptr, TakeError, &reading);
  if (initialized != FLAC__STREAM_DECODER_INIT_STATUS_OK)
    return Status(ErrorCode::kOutOfMemory, "no memory for a FLAC decoder");
  bool going = FLAC__stream_decoder_process_until_end_of_metadata(decoder.get());
  if (going && first > 0)
    going = FLAC__stream_decoder_seek_absolute(decoder.get(), static_cast<FLAC__uint64>(first));
  while (going && reading.error.empty() && reading.next < reading.end) {
    going = FLAC__stream_decoder_process_single(decoder.get());
    if (FLAC__stream_decoder_get_state(decoder.get()) == FLAC__STREAM_DECODER_END_OF_STREAM) break;
  }
  if (reading.error.empty() && reading.next < reading.end) {
    reading.Fail(fmt::format("its FLAC data ends at sample {}, and the header says {}",
                             reading.next, reading.header.frames));
  }
  return reading.error.empty() ? Status() : Bad(reading.error);
}

uint64_t Big(std::span<const char> bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

}  // namespace

bool BeginsAsFlac(std::span<const char> start) {
  return start.size() >= 4 && std::memcmp(start.data(), "fLaC", 4) == 0;
}

Result<SoundHeader> ReadFlacHeader(const SoundBytes& file) {
  constexpr int64_t kInfo = 8, kEnd = 42;  // behind "fLaC" and the block's own header
  char start[kEnd];
  RIDGE_ASSIGN_OR_RETURN(const int64_t got, file.ReadAt(0, start));
  if (got < kEnd) return Bad(fmt::format("ends at byte {}, inside its FLAC header", got));
  if ((start[4] & 0x7F) != 0 || Big({start + 5, 3}) != 34)
    return Bad("its first FLAC block at byte 4 is no STREAMINFO");
  const uint64_t packed = Big({start + kInfo + 10, 8});  // rate 20, channels 3, bits 5, frames 36
  SoundHeader header;
  header.format = SoundFormat::kFlac;
  header.rate = static_cast<int64_t>(packed >> 44);
  header.channels = static_cast<int>(packed >> 41 & 7) + 1;
  header.bits = static_cast<int>(packed >> 36 & 31) + 1;
  header.frames = static_cast<int64_t>(packed & ((uint64_t{1} << 36) - 1));
  if (header.rate < 1 || header.rate > kMostSoundRate) {
    return Bad(fmt::format("its FLAC header at byte 18 says {} samples a second, 1 to {} are read",
                           header.rate, kMostSoundRate));
  }
  if (header.bits < 4)
    return Bad(fmt::format("its FLAC header says {} bits a sample", header.bits));
  if (header.frames < 1)
    return Bad("its FLAC header at byte 21 does not say how many samples there are");
  // Two planes of 32 bits a channel and one of 64, with what aligns them.
  header.decoder_bytes = (8 * header.channels + 8) * kMostBlock + (int64_t{256} << 10);
  return header;
}

Status ReadFlacFrames(const SoundBytes& file, const SoundHeader& header, int64_t first,
                      int64_t count, int channel, float* out) {
  Reading reading{.file = file, .header = header, .error = ""};
  reading.next = first;
  reading.end = first + count;
  reading.channel = channel;
  reading.out = out;
  return Decode(reading, first);
}

}  // namespace ridge
