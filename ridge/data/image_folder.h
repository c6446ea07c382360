// Pictures in folders: DIR/class/*.jpg, *.jpeg, *.png, *.webp.
//
// Each folder of DIR is a class, in the order of the names' bytes; pictures may lie deeper below
// it. Names are compared without case of the suffix, hidden files and folders are left out, so are
// files with other suffixes, which a note tells.  A DIR whose folders are train, and maybe val and
// test, holds a set in each, all with the same classes.
//
// Fields: `image` u8[H,W,3], or u8[H,W] for a model of one channel, and `label` i64[]; the names
// of the classes are in DataSplits::preprocessing.  A picture is decoded, resized and cropped when
// it is read; only the list of files is held in memory.  Opening reads the header of each file.
//
// The argument is DIR[,size=S|HxW][,fit=crop|stretch][,resize=bilinear|bicubic|nearest]
// [,normalize=...]; without a size, H and W are those of the model's image.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ridge/data/image/header.h"
#include "ridge/data/source.h"

namespace ridge {

// Fails with kInvalidArgument for a wrong option, or without any size; with kInvalidData for
// folders and files: the message names the file and the reason.
// With options.preprocessing its classes are those of the label, and each folder is one of them;
// what it says of pictures is done here too, but for what the argument says otherwise.
Result<DataSplits> OpenImageFolder(const std::string& name, const std::string& argument,
                                   const DataOptions& options);

// What is known before the model: `label`, the number of classes, and `image` of three channels
// when the argument has a size.  Reads the names of the classes only.  Fails as OpenImageFolder.
Result<DataFacts> ImageFolderFacts(const std::string& name, const std::string& argument,
                                   const DataOptions& options);

// What the first bytes of the file tell.  Fails with kInvalidData.
Result<ImageHeader> ReadPictureHeader(const std::string& path);

// Whether the name has the suffix of a picture.
bool IsPictureFile(const std::string& path);

// All pictures below a folder, by the bytes of their paths.  Fails with kInvalidData when there is
// none.
Result<std::vector<std::string>> FindPictures(const std::string& folder);

// Pictures without labels, in this order: the field `image`, made as options.preprocessing says.  A
// file that is none ends it, or is left out and told to `on_bad` where that is given; null when
// none is left.  Fails with kInvalidData, kInvalidArgument.
using BadPicture = std::function<void(const std::string& path, const Status& why)>;
Result<SourcePtr> OpenPictures(const std::string& name, const std::vector<std::string>& paths,
                               const DataOptions& options, const BadPicture& on_bad = nullptr);

// Whether the argument's folder has a folder with a picture.
bool HoldsPictures(const std::string& argument);

}  // namespace ridge
