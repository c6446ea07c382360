// ByteStream: the bytes of a file in order, whether it is plain, gzip, or an entry of a zip
// archive.
//
// Decompresses straight into the caller's memory through one input buffer of 64 KiB, so loading
// needs no second copy.  Checksums are verified when the end is reached: call ExpectEnd().
// Errors are kInvalidData and begin with the stream's name.  Not thread-safe.
#pragma once
#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

// A stretch of a file: an entry of a zip archive.
struct FilePart {
  std::string path;
  std::string name;  // for messages
  int64_t offset = 0;
  int64_t stored_bytes = 0;  // in the file
  bool deflated = false;
  uint32_t crc32 = 0;  // of the bytes that come out
};

class ByteStream {
 public:
  // A whole file; gzip (one member or several) is recognized by its first two bytes.
  static Result<std::unique_ptr<ByteStream>> Open(const std::string& path);
  static Result<std::unique_ptr<ByteStream>> OpenPart(const FilePart& part);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Fewer bytes than asked for only at the end.
  Result<int64_t> Read(void* to, int64_t bytes);
  // Fails unless the stream ends here and its checksum is right.
  Status ExpectEnd();

  const std::string& name() const { return name_; }
  // The most that can come out: a header that declares more lies, and must not be believed.
  int64_t bound_bytes() const;

 private:
  enum class Form { kPlain, kGzip, kDeflate };
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  ByteStream(std::string name, std::FILE* file, int64_t stored_bytes);
  Status StartInflate(Form form);
  Result<int64_t> ReadStored(void* to, int64_t bytes);
  Result<int64_t> ReadInflated(uint8_t* to, int64_t bytes);
  Status InflateSome();
  Status FinishMember();
  Status Refill();
  Status CannotRead(int64_t got) const;
  Status Damaged() const;

  std::string name_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  int64_t stored_bytes_;
  int64_t unread_bytes_;  // of stored_bytes_
  Form form_ = Form::kPlain;
  bool ended_ = false;  // the compressed data is complete
  bool check_crc32_ = false;
  uint32_t expected_crc32_ = 0;
  uint32_t crc32_ = 0;
  int64_t produced_bytes_ = 0;
  z_stream inflater_{};
  std::vector<uint8_t> input_;
};

}  // namespace ridge
