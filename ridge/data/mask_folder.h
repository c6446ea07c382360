// Pictures with masks: DIR/images/NAME.jpg and DIR/masks/NAME.png, a class a pixel.
//
// A mask is a PNG of the picture's size, with a palette or grey, of 8 bits or fewer; its pixels are
// class ids.  255 is no class: label -100, which losses and metrics ignore.  Where all masks hold 0
// and 255 alone, 255 is class 1.  Pairs have the same path below images/ and masks/, the suffix
// aside.  A DIR whose folders are train, and maybe val and test, holds both in each.
// DIR/classes.txt names the classes, one a line.
//
// Fields: `image` u8[H,W,3], or u8[H,W] for a model of one channel, and `label` i64[H,W].  A mask
// is resized by nearest to where its picture's pixels go.  Opening reads all masks for the number
// of classes, unless classes=N or a run's preprocessing says it.
//
// The argument is that of images (image_folder.h), and classes=N.
#pragma once
#include <string>

#include "ridge/data/source.h"

namespace ridge {

// Fails with kInvalidArgument for a wrong option; with kInvalidData for folders and files: a
// picture without a mask, and a mask of another size, are bad records.
Result<DataSplits> OpenMaskFolder(const std::string& name, const std::string& argument,
                                  const DataOptions& options);

// What is known before the model: the number of classes; both fields when the argument has a size.
Result<DataFacts> MaskFolderFacts(const std::string& name, const std::string& argument,
                                  const DataOptions& options);

// Whether the argument's folder, or its folder train, has images/ and masks/.
bool HoldsMasks(const std::string& argument);

// The labels of masks: [H,W] of integers beside pictures of that size.  Null when there are none.
const Field* FindMaskField(const std::vector<Field>& fields);

}  // namespace ridge
