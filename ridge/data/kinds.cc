#include "ridge/data/kinds.h"

#include "ridge/data/coco.h"
#include "ridge/data/container/tfrecord.h"
#include "ridge/data/container/web_dataset.h"
#include "ridge/data/csv.h"
#include "ridge/data/idx.h"
#include "ridge/data/image_folder.h"
#include "ridge/data/json_lines.h"
#include "ridge/data/mask_folder.h"
#include "ridge/data/npz_source.h"
#include "ridge/data/parquet.h"
#include "ridge/data/point_folder.h"
#include "ridge/data/sound_folder.h"
#include "ridge/data/synthetic.h"
#include "ridge/data/text_data.h"
#include "ridge/data/transcripts.h"
#include "ridge/data/video_folder.h"
#include "ridge/data/yolo_folder.h"

namespace ridge {
namespace {

using Text = const std::string&;
using Options = const DataOptions&;

Result<DataSplits> FashionMnist(Text, Text, Options options) {
  return OpenFashionMnist(options.fashion_mnist_folder);
}
Result<DataSplits> Synthetic(Text, Text, Options options) { return OpenSynthetic(options); }
Result<DataFacts> NoFacts(Text, Text, Options) { return DataFacts(); }
Result<DataSplits> Idx(Text spec, Text argument, Options) { return OpenIdxFolder(spec, argument); }
Result<DataSplits> Npz(Text spec, Text argument, Options) { return OpenNpz(spec, argument); }

constexpr DataKind kKinds[] = {
    {"fashion-mnist", nullptr, FashionMnist, nullptr},
    {"synthetic", nullptr, Synthetic, NoFacts},
    {"images", "DIR", OpenImageFolder, ImageFolderFacts},
    {"masks", "DIR", OpenMaskFolder, MaskFolderFacts},
    {"idx", "DIR", Idx, nullptr},
    {"npz", "FILE", Npz, nullptr},
    {"csv", "FILE", OpenCsv, nullptr},
    {"tfrecord", "FILES", OpenTfRecord, TfRecordFacts},
    {"tar", "FILES", OpenWebDataset, WebDatasetFacts},
    {"text", "FILES", OpenText, TextFacts},
    {"jsonl", "FILES", OpenJsonLines, JsonLinesFacts},
    {"parquet", "FILES", OpenParquet, ParquetFacts},
    {"audio", "DIR", OpenSoundFolder, SoundFolderFacts},
    {"transcripts", "FILE", OpenTranscripts, TranscriptFacts},
    {"video", "DIR", OpenVideoFolder, VideoFolderFacts},
    {"points", "DIR", OpenPointFolder, PointFolderFacts},
    {"yolo", "DIR", OpenYoloFolder, YoloFolderFacts},
    {"coco", "FILE", OpenCoco, CocoFacts},
};

}  // namespace

std::string DataKind::Form() const {
  return argument == nullptr ? name : std::string(name) + ":" + argument;
}

std::span<const DataKind> DataKinds() { return kKinds; }

}  // namespace ridge
