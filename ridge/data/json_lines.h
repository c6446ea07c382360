// JSON Lines as data: an object a line, of which one value is a text and one its label.
//
// The argument is FILE or a pattern (container/file_list.h: {000..012}, * and ?), plain or gzip,
// and options (text_options.h): text=FIELD, label=FIELD, where a point goes into an object
// ("meta.language").  Samples are those of `text:` (text_data.h).  Integers are class numbers,
// texts names of classes.  Files whose names say train, val and test are the sets.
#pragma once
#include <string>

#include "ridge/data/source.h"

namespace ridge {

// Fails with kInvalidArgument for options, with kInvalidData for files; of a line the message is
// "FILE:3: byte 512: reason".  Such lines are left out where options.bad_records skips.
Result<DataSplits> OpenJsonLines(const std::string& name, const std::string& argument,
                                 const DataOptions& options);

// The number of tokens, and of classes where there are labels; the length if it is given.
Result<DataFacts> JsonLinesFacts(const std::string& name, const std::string& argument,
                                 const DataOptions& options);

}  // namespace ridge
