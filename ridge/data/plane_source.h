// PlaneSource: a source one of whose fields is read in the other order: u8[C,H,W] as u8[H,W,C], or
// back.  Transforms of pictures take the channels last, arrays of others have them first.
#pragma once
#include "ridge/data/source.h"

namespace ridge {

// The field of pictures u8[1,H,W] or u8[3,H,W]; -1 where there is none.  What may be u8[H,W,C] is
// that.
int FindPlanes(const Source& source);

enum class PlaneOrder { kLast, kFirst };

// REQUIRES: the field is of bytes and of rank 3, its channels first for kLast, last for kFirst.
SourcePtr ReorderPlanes(SourcePtr source, int field, PlaneOrder order);

}  // namespace ridge
