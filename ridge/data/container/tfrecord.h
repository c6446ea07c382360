// tf.train.Examples in TFRecord files, plain or gzip.
//
// The argument is PATTERN and options: those of pictures, image=FEATURE, label=FEATURE,
// first-label=N, classes=N, schema=NAME:TYPE,... Fields are the features of the schema
// (example_schema.h); an encoded picture is decoded, resized and cropped when it is read.
//
// Opening reads what the features are, of every record, and the header of each picture; a record's
// checksum is checked when it is read.  8 bytes a record are held, and the content of gzip files;
// while opening 8 more.  Files whose names say train, val and test are the sets; else what is held
// out is chosen by the records' checksums.
#pragma once
#include <string>

#include "ridge/data/source.h"

namespace ridge {

// Fails with kInvalidArgument for an option, with kInvalidData for a file or a record; the message
// has the file, the number of the record and its byte.
Result<DataSplits> OpenTfRecord(const std::string& name, const std::string& argument,
                                const DataOptions& options);

// The fields, but an image only when the argument has a size.  Reads the labels of all training
// records unless the argument has the number of classes.
Result<DataFacts> TfRecordFacts(const std::string& name, const std::string& argument,
                                const DataOptions& options);

}  // namespace ridge
