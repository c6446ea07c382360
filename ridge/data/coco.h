// COCO's instances: a JSON file with `images`, `annotations` and `categories`, and the pictures
// beside it.
//
// Classes are the categories by rising id.  A box that is marked as a crowd is left out, outlines
// are not read.  Fields are box_source.h.
//
// The argument is FILE[,images=DIR][,size=S|HxW][,fit=stretch|crop][,boxes=N][,...] as for `yolo`;
// without images= the pictures lie in the folder of FILE.
#pragma once
#include <string>
#include <string_view>

#include "ridge/data/box_source.h"
#include "ridge/data/source.h"

namespace ridge {

// Fails with kInvalidArgument for a wrong option, with kInvalidData for files: the message names
// the byte, the image or the annotation.
Result<DataSplits> OpenCoco(const std::string& name, const std::string& argument,
                            const DataOptions& options);
// Reads the JSON file.  Fails as OpenCoco.
Result<DataFacts> CocoFacts(const std::string& name, const std::string& argument,
                            const DataOptions& options);

// The pictures of the text of such a file, by their order in it, as `train`; paths are
// FOLDER/file_name.  Annotations that are wrong are told to `bad_records` where that skips.  Fails
// with kInvalidData, "FILE: reason".
Result<BoxSets> ParseCoco(std::string_view text, const std::string& file, const std::string& folder,
                          const BadRecordsPtr& bad_records);

}  // namespace ridge
