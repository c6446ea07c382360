// Pictures and labels as Ultralytics' trainer has them.
//
// DIR/images/train and DIR/images/val (and test) with DIR/labels/train/1.txt for
// DIR/images/train/1.jpg; or DIR/train/images and DIR/train/labels, where `valid` is val too; or
// DIR/images and DIR/labels alone.  A picture without a file of labels has no objects.  The names
// of the classes are those of DIR/data.yaml; without it they are the numbers up to the largest.
// Labels are yolo_format.h, fields are box_source.h.
//
// The argument is DIR[,size=S|HxW][,fit=stretch|crop][,boxes=N][,...] as for `images`.
#pragma once
#include <string>

#include "ridge/data/source.h"

namespace ridge {

// Fails with kInvalidArgument for a wrong option, with kInvalidData for folders and files: the
// message names the file, and of labels the line.
Result<DataSplits> OpenYoloFolder(const std::string& name, const std::string& argument,
                                  const DataOptions& options);

// The numbers of classes and of places for boxes.  Reads all labels.  Fails as OpenYoloFolder.
Result<DataFacts> YoloFolderFacts(const std::string& name, const std::string& argument,
                                  const DataOptions& options);

}  // namespace ridge
