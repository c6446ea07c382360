// Sounds and what is said in them: transcript_files.h, for speech recognition.
//
// Fields: `features` f32[mels, frames] or `audio` f32[samples] as those of sound_folder.h;
// `frame_count` i64[], how many of them are sound and not padding; `text` i64[letters], classes of
// spelling.h, 0 behind the last; `text_length` i64[].  The characters are those of the training
// part, and the run keeps them.  A model that writes, with inputs `tokens` and `label` of one
// length, gets those instead of the text: i64[length] of transcript_tokens.h, kIgnoredLabel behind
// the last label.
//
// The argument is FILE|DIR[,val=FILE][,test=FILE][,sounds=DIR][,case=keep|lower][,letters=N]
// [,tokenizer=FILE|DIR][,length=N][,sound=NAME][,text=NAME], and the options of sounds.  Sounds
// longer than `seconds` and texts longer than `letters`, or `length` in tokens, are left out, and a
// note counts them: cutting would part sound and text.
#pragma once
#include <string>

#include "ridge/data/source.h"

namespace ridge {

inline constexpr int64_t kMostTranscriptLetters = 1 << 14;

// Fails with kInvalidArgument for a wrong option; with kInvalidData for files: the message names
// the file and the line.
Result<DataSplits> OpenTranscripts(const std::string& name, const std::string& argument,
                                   const DataOptions& options);

// What is known before the model: all but the sounds' fields, and the model's sizes.  Fails as
// OpenTranscripts.
Result<DataFacts> TranscriptFacts(const std::string& name, const std::string& argument,
                                  const DataOptions& options);

// Fails with kInvalidData for a sound that is longer than the run's, whose end would not be heard.
// One that cannot be read is OpenSounds' to tell.
// REQUIRES: options.preprocessing->sounds.
Status CheckHeard(const std::string& path, const DataOptions& options);

// Sounds of OpenSounds with their `frame_count`.  Reads their headers.
// REQUIRES: as CheckHeard.
Result<SourcePtr> CountFrames(const SourcePtr& sounds, const DataOptions& options);

}  // namespace ridge
