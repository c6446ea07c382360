// WebDataset: tar archives whose members of one name are one sample.
//
//   0001.jpg 0001.cls 0002.jpg 0002.cls ...
//
// The name ends at the first dot after the last slash, what follows is the part of the sample:
//
//   jpg jpeg png webp   the picture `image`, decoded, resized and cropped when it is read
//   cls                 `label`: a number or the name of a class
//   json                with json=KEY: `label` is this value
//   npy                 an array of one type in all samples: `data`, or of x.npy `x`
//
// Other parts, and those in which the samples differ, are left out; a note tells.
//
// The argument is PATTERN and options: those of pictures, image=PART, json=KEY, classes=N.
// Opening reads all headers and labels, and the header of each picture.  Held are 16 bytes a
// picture and array, 8 a label, and the content of gzip files.  Files whose names say train, val
// and test are the sets; else what is held out is chosen by the samples' names.
#pragma once
#include <string>

#include "ridge/data/source.h"

namespace ridge {

// Fails with kInvalidArgument for an option, with kInvalidData for a file or a member; the message
// has the file, the member and its byte.
Result<DataSplits> OpenWebDataset(const std::string& name, const std::string& argument,
                                  const DataOptions& options);

// The fields, but an image only when the argument has a size.  Reads the labels of the training
// archives.
Result<DataFacts> WebDatasetFacts(const std::string& name, const std::string& argument,
                                  const DataOptions& options);

}  // namespace ridge
