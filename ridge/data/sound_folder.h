// Sounds in folders: DIR/class/*.wav, *.flac, found as pictures are (class_folders.h).
//
// Fields: `features` f32[mels, frames], the logarithm of a mel spectrogram, or `audio`
// f32[samples]; and `label` i64[].  A sound is decoded, resampled and cut when it is read; only the
// list of files is held in memory.  Opening reads the header of each file.
//
// The argument is DIR[,KEY=VALUE...] (sound_options.h).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ridge/data/sound/sound_file.h"
#include "ridge/data/source.h"

namespace ridge {

// Fails with kInvalidArgument for a wrong option; with kInvalidData for folders and files: the
// message names the file and the reason.  With options.preprocessing its classes are those of the
// label, and what it says of sounds is done here too, but for what the argument says otherwise.
Result<DataSplits> OpenSoundFolder(const std::string& name, const std::string& argument,
                                   const DataOptions& options);

// What is known before the model: `label`, and the model's sizes.  Reads the headers of the
// training files when nothing says how long sounds are.  Fails as OpenSoundFolder.
Result<DataFacts> SoundFolderFacts(const std::string& name, const std::string& argument,
                                   const DataOptions& options);

// Fails with kInvalidData; the message begins with the path.
Result<SoundHeader> ReadSoundFileHeader(const std::string& path);

// Whether the name has the suffix of a sound.
bool IsSoundFile(const std::string& path);

// All sounds below a folder, by the bytes of their paths.  Fails with kInvalidData when there is
// none.
Result<std::vector<std::string>> FindSounds(const std::string& folder);

// Sounds without labels, in this order, made as options.preprocessing says.  A file that is none
// ends it, or is left out and told to `on_bad` where that is given; null when none is left.  Fails
// with kInvalidData, kInvalidArgument.
using BadSound = std::function<void(const std::string& path, const Status& why)>;
Result<SourcePtr> OpenSounds(const std::string& name, const std::vector<std::string>& paths,
                             const DataOptions& options, const BadSound& on_bad = nullptr);

// Likewise of parts of files; `on_bad` is told the number of the piece.
struct SoundPiece {
  std::string path;
  SoundPart part;
};
using BadPiece = std::function<void(size_t piece, const Status& why)>;
Result<SourcePtr> OpenSoundPieces(const std::string& name, const std::vector<SoundPiece>& pieces,
                                  const DataOptions& options, const BadPiece& on_bad);

}  // namespace ridge
