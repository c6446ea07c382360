// Frames of videos by libav: the functions of ridge/data/container/video_abi.h.
//
// Frame k is the one with the k-th least time stamp.  It is decoded from the last key frame that is
// not shown after it, so that what a decoder read before changes no byte.  Streams without time
// stamps are counted by decoding them, and read from the start.  One thread decodes; a file opens
// no other file.
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/imgutils.h>
#include <libswscale/swscale.h>
}
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "ridge/data/container/video_abi.h"

namespace {

constexpr const char* kFormats =
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,ogg,mpegvideo,h264";
constexpr const char* kCodecs =
    "h264,hevc,mpeg1video,mpeg2video,mpeg4,h263,vp8,vp9,libdav1d,mjpeg,theora,ffv1,prores";
constexpr size_t kMostBytesAtOnce = size_t{1} << 30;
constexpr int kReadBytes = 1 << 16;
constexpr int64_t kFramesHeld = 20;  // a decoder's references (16), its output and some to spare
constexpr int64_t kOfDecoder = 8 << 20;
constexpr int64_t kOfPacket = 64;  // of a demuxer's own index
constexpr int kMostAfter = 64;     // frames shown after the wanted one, before it is given up

// The reason is for people.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string Reason(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(code, text, sizeof text);
  return text;
}

// ---- reading

struct Reader {
  int fd = -1;
  int64_t at = 0, size = 0;
  int failed = 0;  // errno
  int64_t failed_at = 0;
};

int ReadPacketBytes(void* opaque, uint8_t* to, int bytes) {
  Reader& reader = *static_cast<Reader*>(opaque);
  ssize_t got;
  do {
    got = ::pread(reader.fd, to, static_cast<size_t>(bytes), reader.at);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    reader.failed = errno;
    reader.failed_at = reader.at;
    return AVERROR(errno);
  }
  reader.at += got;
  return got == 0 ? AVERROR_EOF : static_cast<int>(got);
}

int64_t SeekBytes(void* opaque, int64_t offset, int whence) {
  Reader& reader = *static_cast<Reader*>(opaque);
  if ((whence & AVSEEK_SIZE) != 0) return reader.size;
  whence &= ~AVSEEK_FORCE;
  const int64_t from = whence == SEEK_CUR ? reader.at : whence == SEEK_END ? reader.size : 0;
  if (offset < -from) return AVERROR(EINVAL);
  return reader.at = from + offset;
}

// Files that name others are not followed.
int OpenNothing(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
  return AVERROR(EPERM);
}

struct Options {
  ~Options() { av_dict_free(&all); }
  AVDictionary* all = nullptr;
};

class Demuxer {
 public:
  explicit Demuxer(int fd, int64_t most_pixels) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) throw Failure(std::string("cannot be read: ") + strerror(errno));
    reader_.fd = fd;
    reader_.size = info.st_size;
    if (reader_.size == 0) throw Failure("is empty");
    auto* buffer = static_cast<uint8_t*>(av_malloc(kReadBytes));
    io_ = buffer == nullptr ? nullptr
                            : avio_alloc_context(buffer, kReadBytes, 0, &reader_, ReadPacketBytes,
                                                 nullptr, SeekBytes);
    format_ = avformat_alloc_context();
    if (io_ == nullptr || format_ == nullptr) {
      if (io_ == nullptr) av_free(buffer);
      Free();
      throw std::bad_alloc();
    }
    format_->pb = io_;
    format_->io_open = OpenNothing;
    try {
      Open(most_pixels);
    } catch (...) {
      Free();
      throw;
    }
  }
  Demuxer(const Demuxer&) = delete;
  Demuxer& operator=(const Demuxer&) = delete;
  ~Demuxer() { Free(); }

  AVFormatContext* format() { return format_; }
  AVStream& stream() { return *format_->streams[stream_]; }

  // False at the end of the file.
  bool Next(AVPacket* packet) {
    for (;;) {
      av_packet_unref(packet);
      const int got = av_read_frame(format_, packet);
      if (reader_.failed != 0) ThrowRead();
      if (got == AVERROR_EOF) return false;
      if (got < 0) throw Failure("its packets are damaged: " + Reason(got));
      if (packet->stream_index == stream_ && (packet->flags & AV_PKT_FLAG_DISCARD) == 0)
        return true;
    }
  }

  [[noreturn]] void ThrowRead() const {
    throw Failure("cannot be read at byte " + std::to_string(reader_.failed_at) + ": " +
                  strerror(reader_.failed));
  }

 private:
  void Open(int64_t most_pixels) {
    Options options;
    av_dict_set(&options.all, "format_whitelist", kFormats, 0);
    av_dict_set(&options.all, "codec_whitelist", kCodecs, 0);
    av_dict_set(&options.all, "max_streams", "64", 0);
    const int opened = avformat_open_input(&format_, "", nullptr, &options.all);
    if (reader_.failed != 0) ThrowRead();
    if (opened < 0) throw Failure("is no video that can be read: " + Reason(opened));
    std::vector<AVDictionary*> of_streams(format_->nb_streams, nullptr);
    for (AVDictionary*& of_stream : of_streams) {
      av_dict_set_int(&of_stream, "max_pixels", most_pixels, 0);
      av_dict_set(&of_stream, "threads", "1", 0);
    }
    const int found = avformat_find_stream_info(format_, of_streams.data());
    for (AVDictionary*& of_stream : of_streams) av_dict_free(&of_stream);
    if (reader_.failed != 0) ThrowRead();
    if (found < 0) throw Failure("its streams cannot be read: " + Reason(found));
    ChooseStream();
  }

  void ChooseStream() {
    for (unsigned i = 0; i < format_->nb_streams; ++i) {
      AVStream& stream = *format_->streams[i];
      const bool picture = (stream.disposition & AV_DISPOSITION_ATTACHED_PIC) != 0;
      const bool video = stream.codecpar->codec_type == AVMEDIA_TYPE_VIDEO && !picture;
      if (video && stream_ < 0) stream_ = static_cast<int>(i);
      if (static_cast<int>(i) != stream_) stream.discard = AVDISCARD_ALL;
    }
    if (stream_ < 0) throw Failure("has no stream of pictures");
  }

  void Free() {
    avformat_close_input(&format_);
    if (io_ != nullptr) av_freep(&io_->buffer);
    avio_context_free(&io_);
  }

  Reader reader_;
  AVIOContext* io_ = nullptr;
  AVFormatContext* format_ = nullptr;
  int stream_ = -1;
};

// ---- the index

struct Key {
  int64_t pts = 0, dts = 0;
};

struct Index {
  RidgeVideoInfo info{};
  std::string format;
  int64_t most_pixels = 0;
  AVRational time_base{1, 1};
  std::vector<int64_t> pts;  // of the frames, rising; of counted ones, what the decoder says
  std::vector<Key> keys;     // rising by pts
  bool counted = false;      // no time stamps: frames are known by their number
};

struct PacketDeleter {
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
};
struct FrameDeleter {
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
};
struct CodecDeleter {
  void operator()(AVCodecContext* codec) const { avcodec_free_context(&codec); }
};
using PacketPtr = std::unique_ptr<AVPacket, PacketDeleter>;
using FramePtr = std::unique_ptr<AVFrame, FrameDeleter>;
using CodecPtr = std::unique_ptr<AVCodecContext, CodecDeleter>;

template <typename T>
T* Check(T* made) {
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

const AVCodec* FindCodec(const AVStream& stream) {
  const AVCodec* codec = avcodec_find_decoder(stream.codecpar->codec_id);
  const std::string name = avcodec_get_name(stream.codecpar->codec_id);
  const auto known = [&](const std::string& codec_name) {
    return (std::string(",") + kCodecs + ",").find("," + codec_name + ",") != std::string::npos;
  };
  if (codec == nullptr || !known(codec->name)) throw Failure("codec " + name + " is not read");
  return codec;
}

CodecPtr OpenCodec(const AVStream& stream, int64_t most_pixels) {
  const AVCodec* codec = FindCodec(stream);
  CodecPtr context(Check(avcodec_alloc_context3(codec)));
  if (avcodec_parameters_to_context(context.get(), stream.codecpar) < 0) throw std::bad_alloc();
  context->thread_count = 1;
  context->max_pixels = most_pixels;
  context->pkt_timebase = stream.time_base;
  context->err_recognition = AV_EF_EXPLODE | AV_EF_BITSTREAM | AV_EF_BUFFER | AV_EF_CRCCHECK;
  context->flags |= AV_CODEC_FLAG_BITEXACT;
  const int opened = avcodec_open2(context.get(), codec, nullptr);
  if (opened < 0) throw Failure("its codec cannot be opened: " + Reason(opened));
  return context;
}

void CheckSize(const AVCodecParameters& codec, int64_t most_pixels) {
  const int64_t width = codec.width, height = codec.height;
  const std::string most = std::to_string(most_pixels);
  if (width < 1 || height < 1)  // libav gives none where there are too many
    throw Failure("has frames of no known size, or of more than " + most + " pixels");
  if (width * height <= most_pixels) return;
  throw Failure("has frames of " + std::to_string(width) + "x" + std::to_string(height) +
                " pixels, at most " + most + " are read");
}

int64_t DecoderBytes(const AVCodecParameters& codec) {
  constexpr int kAlign = 64, kEdge = 128;
  const auto format = static_cast<AVPixelFormat>(codec.format);
  const int64_t pixels = (int64_t{codec.width} + kEdge) * (int64_t{codec.height} + kEdge);
  const int frame =
      av_image_get_buffer_size(format, codec.width + kEdge, codec.height + kEdge, kAlign);
  const int64_t rgb = 3 * pixels;
  return kFramesHeld * (frame > 0 ? frame : 4 * pixels) + rgb + kOfDecoder;
}

void CheckCount(size_t frames, int64_t most) {
  if (static_cast<int64_t>(frames) > most)
    throw Failure("has more than " + std::to_string(most) + " frames");
}

// The time stamps of all packets; false where some have none, or two the same.
bool ScanPackets(Demuxer& demuxer, int64_t most_frames, Index& index) {
  const PacketPtr packet(Check(av_packet_alloc()));
  bool stamped = true;
  while (demuxer.Next(packet.get())) {
    const bool key = (packet->flags & AV_PKT_FLAG_KEY) != 0;
    stamped = stamped && packet->pts != AV_NOPTS_VALUE && packet->dts != AV_NOPTS_VALUE;
    if (key) index.keys.push_back({packet->pts, packet->dts});
    if (!index.keys.empty()) index.pts.push_back(packet->pts);
    CheckCount(index.pts.size(), most_frames);
  }
  if (index.keys.empty()) throw Failure("has no key frame");
  const int64_t first = index.keys.front().pts;
  std::sort(index.keys.begin(), index.keys.end(),
            [](const Key& a, const Key& b) { return a.pts < b.pts; });
  std::erase_if(index.pts, [&](int64_t pts) { return pts < first; });
  std::sort(index.pts.begin(), index.pts.end());
  return stamped && std::adjacent_find(index.pts.begin(), index.pts.end()) == index.pts.end();
}

void CountFrames(Demuxer& demuxer, int64_t most_frames, Index& index) {
  index.counted = true;
  index.pts.clear();
  index.keys.clear();
  const CodecPtr codec = OpenCodec(demuxer.stream(), index.most_pixels);
  const PacketPtr packet(Check(av_packet_alloc()));
  const FramePtr frame(Check(av_frame_alloc()));
  for (bool more = true; more;) {
    more = demuxer.Next(packet.get());
    (void)avcodec_send_packet(codec.get(), more ? packet.get() : nullptr);
    while (avcodec_receive_frame(codec.get(), frame.get()) >= 0) {
      index.pts.push_back(frame->best_effort_timestamp);
      CheckCount(index.pts.size(), most_frames);
    }
  }
  if (index.pts.empty()) throw Failure("has no frame that can be decoded");
}

std::unique_ptr<Index> MakeIndex(int fd, int64_t most_pixels, int64_t most_frames) {
  auto index = std::make_unique<Index>();
  auto demuxer = std::make_unique<Demuxer>(fd, most_pixels);
  const AVStream& stream = demuxer->stream();
  const AVCodecParameters& codec = *stream.codecpar;
  FindCodec(stream);
  CheckSize(codec, most_pixels);
  index->most_pixels = most_pixels;
  index->time_base = stream.time_base;
  const std::string formats = demuxer->format()->iformat->name;
  index->format = formats.substr(0, formats.find(',')) + ", " + avcodec_get_name(codec.codec_id);
  index->info = {codec.width, codec.height, 0, 0, DecoderBytes(codec), index->format.c_str()};
  const int64_t stated = stream.nb_frames;
  const bool stamped = ScanPackets(*demuxer, most_frames, *index);
  const auto packets = static_cast<int64_t>(index->pts.size());
  if (formats.starts_with("mov") && packets < stated && demuxer->format()->pb->eof_reached != 0) {
    throw Failure("is cut: it has " + std::to_string(packets) + " of " + std::to_string(stated) +
                  " frames");
  }
  if (!stamped) {
    demuxer = std::make_unique<Demuxer>(fd, most_pixels);
    CountFrames(*demuxer, most_frames, *index);
  }
  index->pts.shrink_to_fit();
  index->info.frames = static_cast<int64_t>(index->pts.size());
  index->info.decoder_bytes += kOfPacket * index->info.frames;
  index->info.index_bytes =
      static_cast<int64_t>(sizeof(Index) + index->pts.capacity() * sizeof(int64_t) +
                           index->keys.capacity() * sizeof(Key));
  return index;
}

// ---- decoding

// The first frame may be of any number: what came before a decoder's start is not counted.
class Decoder {
 public:
  Decoder(const Index& index, int fd)
      : index_(index),
        fd_(fd),
        packet_(Check(av_packet_alloc())),
        frame_(Check(av_frame_alloc())) {}
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() { sws_freeContext(scaler_); }

  void Read(int64_t k, uint8_t* rgb) {
    try {
      if (index_.counted)
        FindNumber(k);
      else
        FindStamp(index_.pts[static_cast<size_t>(k)]);
      Convert(rgb);
    } catch (...) {
      demuxer_.reset();  // the next read begins anew
      throw;
    }
  }

 private:
  // Opens the file, at its start.
  void Begin() {
    codec_.reset();
    demuxer_ = std::make_unique<Demuxer>(fd_, index_.most_pixels);
    codec_ = OpenCodec(demuxer_->stream(), index_.most_pixels);
    pending_ = draining_ = false;
    shown_ = 0;
    last_ = INT64_MIN;
  }

  // Seeks to the packet of a key frame; false where the file's own index does not lead there.
  bool SeekTo(const Key& key) {
    if (demuxer_ == nullptr) Begin();
    const int index = demuxer_->stream().index;
    if (av_seek_frame(demuxer_->format(), index, key.dts, AVSEEK_FLAG_BACKWARD) < 0) return false;
    avcodec_flush_buffers(codec_.get());
    draining_ = false;
    last_ = INT64_MIN;
    while (demuxer_->Next(packet_.get())) {
      if (packet_->pts == key.pts && packet_->dts == key.dts) return pending_ = true;
      if (packet_->dts != AV_NOPTS_VALUE && packet_->dts > key.dts) return false;
    }
    return false;
  }

  // References may reach behind a key frame that has some shown before it: then decoding begins
  // at an earlier one.
  void FindStamp(int64_t pts) {
    const auto after = std::upper_bound(index_.keys.begin(), index_.keys.end(), pts,
                                        [](int64_t at, const Key& key) { return at < key.pts; });
    const int64_t key = after - index_.keys.begin() - 1;
    if (demuxer_ != nullptr && key == key_ && pts > last_) return Advance(pts);
    key_ = key;
    for (const int64_t from : {key, std::max<int64_t>(key - 1, 0), int64_t{0}}) {
      try {
        BeginAt(index_.keys[static_cast<size_t>(from)]);
        return Advance(pts);
      } catch (const Failure&) {
        if (from == 0) throw;
        demuxer_.reset();
      }
    }
  }

  void BeginAt(const Key& key) {
    if (!SeekTo(key)) Begin();
    ignored_before_ = key.pts;
  }

  void Advance(int64_t pts) {
    wanted_ = pts;
    for (int after = 0; after < kMostAfter;) {
      if (!NextFrame()) break;
      const int64_t at =
          frame_->pts != AV_NOPTS_VALUE ? frame_->pts : frame_->best_effort_timestamp;
      last_ = std::max(last_, at);
      if (at == pts) return CheckFrame();
      if (at > pts) ++after;
    }
    throw Failure("the decoder gives no such frame");
  }

  void FindNumber(int64_t k) {
    if (demuxer_ == nullptr || k < shown_) Begin();
    ignored_before_ = INT64_MIN;
    while (shown_ <= k) {
      if (!NextFrame()) throw Failure("the decoder gives no such frame");
      ++shown_;
    }
    CheckFrame();
  }

  // Into frame_; false when there are no more.
  bool NextFrame() {
    for (;;) {
      const int got = avcodec_receive_frame(codec_.get(), frame_.get());
      if (got >= 0) return true;
      if (got == AVERROR_EOF) return false;
      if (got != AVERROR(EAGAIN) && !Ignored()) throw Failure("is damaged: " + Reason(got));
      if (draining_) return false;
      Send();
    }
  }

  // The next packet, or that there are no more.
  void Send() {
    const bool more = pending_ || demuxer_->Next(packet_.get());
    pending_ = false;
    draining_ = !more;
    codec_->skip_frame = more && Skipped() ? AVDISCARD_NONREF : AVDISCARD_DEFAULT;
    if (more && (packet_->flags & AV_PKT_FLAG_CORRUPT) != 0 && !Ignored())
      throw Failure("a packet that it needs is cut");
    const int sent = avcodec_send_packet(codec_.get(), more ? packet_.get() : nullptr);
    if (more && sent < 0 && !Ignored()) throw Failure("is damaged: " + Reason(sent));
  }

  // Shown before the wanted frame, and no other refers to it.
  bool Skipped() const {
    const AVCodecID id = codec_->codec_id;
    const bool says = id == AV_CODEC_ID_H264 || id == AV_CODEC_ID_MPEG4 ||
                      id == AV_CODEC_ID_MPEG1VIDEO || id == AV_CODEC_ID_MPEG2VIDEO;
    return says && packet_->pts != AV_NOPTS_VALUE && packet_->pts < wanted_;
  }

  // Frames shown before the key frame may refer to what was not decoded.
  bool Ignored() const { return packet_->pts != AV_NOPTS_VALUE && packet_->pts < ignored_before_; }

  void CheckFrame() const {
    if (frame_->decode_error_flags != 0 || (frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0)
      throw Failure("is damaged");
    if (frame_->width == index_.info.width && frame_->height == index_.info.height) return;
    throw Failure("has " + std::to_string(frame_->width) + "x" + std::to_string(frame_->height) +
                  " pixels; the video has " + std::to_string(index_.info.width) + "x" +
                  std::to_string(index_.info.height));
  }

  void Convert(uint8_t* rgb) {
    const int width = frame_->width, height = frame_->height;
    scaler_ = sws_getCachedContext(
        scaler_, width, height, static_cast<AVPixelFormat>(frame_->format), width, height,
        AV_PIX_FMT_RGB24, SWS_BILINEAR | SWS_BITEXACT | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT,
        nullptr, nullptr, nullptr);
    if (scaler_ == nullptr) throw Failure("its pixels cannot become RGB");
    const int* matrix = sws_getCoefficients(frame_->colorspace);
    const int full = frame_->color_range == AVCOL_RANGE_JPEG ? 1 : 0;
    sws_setColorspaceDetails(scaler_, matrix, full, sws_getCoefficients(SWS_CS_DEFAULT), 1, 0,
                             1 << 16, 1 << 16);
    // libswscale may write some bytes behind the last row.
    pixels_.resize(static_cast<size_t>(width) * 3 * static_cast<size_t>(height) + 64);
    uint8_t* const to[] = {pixels_.data(), nullptr, nullptr, nullptr};
    const int strides[] = {width * 3, 0, 0, 0};
    if (sws_scale(scaler_, frame_->data, frame_->linesize, 0, height, to, strides) != height)
      throw Failure("its pixels cannot become RGB");
    std::memcpy(rgb, pixels_.data(), static_cast<size_t>(width) * 3 * static_cast<size_t>(height));
  }

  const Index& index_;
  const int fd_;
  std::unique_ptr<Demuxer> demuxer_;
  CodecPtr codec_;
  const PacketPtr packet_;
  const FramePtr frame_;
  SwsContext* scaler_ = nullptr;
  std::vector<uint8_t> pixels_;
  bool pending_ = false;   // packet_ is to be decoded
  bool draining_ = false;  // all packets are
  int64_t key_ = -1;       // that of the last frame
  int64_t wanted_ = INT64_MIN;
  int64_t shown_ = 0, last_ = INT64_MIN, ignored_before_ = INT64_MIN;
};

// ---- the functions

void Say(const char* text, char* error, int64_t bytes) {
  if (bytes > 0) std::snprintf(error, static_cast<size_t>(bytes), "%s", text);
}

template <typename Do>
int32_t Guarded(char* error, int64_t error_bytes, const Do& run) {
  try {
    run();
    return 0;
  } catch (const std::bad_alloc&) {
    Say("there is not enough memory", error, error_bytes);
  } catch (const std::exception& failure) {
    Say(failure.what(), error, error_bytes);
  } catch (...) {
    Say("failed", error, error_bytes);
  }
  return 1;
}

void* MakeIndexOf(int32_t fd, int64_t most_pixels, int64_t most_frames, char* error,
                  int64_t error_bytes) {
  static std::once_flag once;
  std::call_once(once, [] {
    av_log_set_level(AV_LOG_QUIET);
    av_max_alloc(kMostBytesAtOnce);
  });
  std::unique_ptr<Index> index;
  const int32_t failed =
      Guarded(error, error_bytes, [&] { index = MakeIndex(fd, most_pixels, most_frames); });
  return failed != 0 ? nullptr : index.release();
}

void DropIndex(void* index) { delete static_cast<Index*>(index); }

RidgeVideoInfo Info(const void* index) { return static_cast<const Index*>(index)->info; }

double Seconds(const void* opaque, int64_t frame) {
  const Index& index = *static_cast<const Index*>(opaque);
  const int64_t at = index.pts[static_cast<size_t>(frame)], first = index.pts.front();
  if (at == AV_NOPTS_VALUE || first == AV_NOPTS_VALUE) return static_cast<double>(frame) / 25;
  return (static_cast<double>(at) - static_cast<double>(first)) * av_q2d(index.time_base);
}

void* Open(const void* index, int32_t fd, char* error, int64_t error_bytes) {
  std::unique_ptr<Decoder> decoder;
  const int32_t failed = Guarded(error, error_bytes, [&] {
    decoder = std::make_unique<Decoder>(*static_cast<const Index*>(index), fd);
  });
  return failed != 0 ? nullptr : decoder.release();
}

void Close(void* decoder) { delete static_cast<Decoder*>(decoder); }

int32_t Read(void* decoder, int64_t frame, uint8_t* rgb, char* error, int64_t error_bytes) {
  return Guarded(error, error_bytes, [&] { static_cast<Decoder*>(decoder)->Read(frame, rgb); });
}

constexpr RidgeVideoApi kApi = {RIDGE_VIDEO_ABI,
                                "libavcodec " AV_STRINGIFY(LIBAVCODEC_VERSION),
                                MakeIndexOf,
                                DropIndex,
                                Info,
                                Seconds,
                                Open,
                                Close,
                                Read};

}  // namespace

extern "C" __attribute__((visibility("default"))) const RidgeVideoApi* ridge_video_api() {
  return &kApi;
}
