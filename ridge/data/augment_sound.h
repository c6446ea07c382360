// AugmentSound: a source whose sounds are changed at random, as functions of (seed, epoch, index):
// for training sets alone.
#pragma once
#include "ridge/data/sound/sound_transforms.h"
#include "ridge/data/source.h"

namespace ridge {

// Whether the source's samples are sounds: `audio` or `features`, cut by the source.
bool HoldsSounds(const Source& source);

// REQUIRES: HoldsSounds(*source).  Fails with kInvalidArgument for masks without a spectrogram.
Result<SourcePtr> AugmentSounds(SourcePtr source, SoundAugmentation augmentation);

}  // namespace ridge
