// Transcript files: what is said in which sound.
//
//   JSON lines   {"audio_filepath": "a.wav", "duration": 1.2, "text": "yes"}, as NeMo's manifests
//   .csv, .tsv   columns path and sentence, as Common Voice has them; cells of .tsv have no quotes
//   .trans.txt   lines "ID WORDS" beside ID.flac or ID.wav; of a folder all below it, as
//   LibriSpeech
//
// Other names of a value are taken too: audio, file, file_name, wav_filename; transcript,
// transcription.  Paths are relative to the file's folder, or to its folder clips/.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/data/bad_records.h"

namespace ridge {

inline constexpr size_t kMostTranscriptBytes = 1 << 16, kMostSoundPathBytes = 4096;

struct Transcript {
  std::string sound;             // the path to open
  std::string name;              // as it stands in the file
  std::string origin;            // "train.jsonl:12"
  std::string text;              // as it stands there
  double seconds = 0;            // as it stands there; 0: it does not
  std::optional<double> offset;  // seconds into the sound where it begins; nothing: it is whole
};

struct TranscriptNames {
  std::string sound, text;  // of values or columns; "": those above
};

// Transcripts in the order of the lines, of a folder by the bytes of the files' paths.  Sounds lie
// in `sounds` unless it is "".  A line that is wrong ends it, or is told to `bad_records` where
// that skips.  Fails with kInvalidData, "FILE:LINE: reason".
Result<std::vector<Transcript>> ReadTranscripts(const std::string& path, const std::string& sounds,
                                                const TranscriptNames& names,
                                                const BadRecordsPtr& bad_records);

}  // namespace ridge
