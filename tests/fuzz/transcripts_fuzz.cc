// A file of any bytes, of each form: what is taken has a path and a text within the limits, and
// what is said to be bad is no more than the lines.
#include <algorithm>

#include "ridge/data/spelling.h"
#include "ridge/data/transcript_files.h"
#include "tests/fuzz/fuzz_file.h"

namespace {

void Read(const std::string& path, int64_t lines) {
  const auto bad =
      std::make_shared<ridge::BadRecords>(*ridge::BadRecordsPolicy::Parse("skip:1000000"));
  const auto read = ridge::ReadTranscripts(path, "", {}, bad);
  RIDGE_CHECK(lines < 0 || bad->count() <= lines, "a line each");
  if (!read.ok()) return;
  for (const ridge::Transcript& one : *read) {
    RIDGE_CHECK(!one.name.empty() && one.sound.ends_with(one.name), one.sound);
    RIDGE_CHECK(one.name.find('\0') == std::string::npos, "no path");
    RIDGE_CHECK(one.text.size() <= ridge::kMostTranscriptBytes, "text");
    RIDGE_CHECK(one.seconds >= 0 && one.offset.value_or(0) >= 0, "seconds");
    const std::string plain = ridge::PlainTranscript(one.text, /*lower=*/true);
    const auto letters = ridge::LettersOf({plain});
    RIDGE_CHECK(letters.ok(), letters.status().message());
    std::vector<uint16_t> spelled;
    const ridge::Spelling spelling({true, *letters});
    spelling.Spell(plain, spelled);
    const std::vector<int64_t> classes(spelled.begin(), spelled.end());
    RIDGE_CHECK(spelling.Read(classes) == plain, "the text comes back");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ridge::FuzzFile file(data, size);
  const bool gzip = size >= 2 && data[0] == 0x1F;
  const auto lines =
      gzip ? -1 : std::count(data, data + size, '\n') + std::count(data, data + size, '\r') + 1;
  Read(file.path(), lines);
  for (const char* form : {".csv", ".tsv", ".trans.txt"}) {
    const std::string link = "/tmp/transcripts_fuzz-" + std::to_string(::getpid()) + form;
    ::unlink(link.c_str());
    RIDGE_CHECK(::symlink(file.path().c_str(), link.c_str()) == 0, "symlink");
    Read(link, lines);
    ::unlink(link.c_str());
  }
  return 0;
}
