/* The functions that the plug-in for videos gives to the program, as C.
 *
 * The program finds the plug-in when it runs (video_plugin.h) and knows nothing of libav; the
 * plug-in (plugins/video) knows nothing of the program.  A change of anything here is another
 * RIDGE_VIDEO_ABI.  Nothing throws.  An index does not change and may be used by many threads; a
 * decoder is used by one at a time.  Files are read by descriptors, which stay the caller's. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RIDGE_VIDEO_ABI 1

struct RidgeVideoInfo {
  int32_t width, height;
  int64_t frames;        /* at least 1, in the order in which they are shown */
  int64_t index_bytes;   /* that the index holds */
  int64_t decoder_bytes; /* that a decoder holds, at most */
  const char* format;    /* "mov, h264"; belongs to the index */
};

struct RidgeVideoApi {
  int32_t abi;
  const char* library; /* "libavcodec 59.37.100" */

  /* What the packets of the first video stream tell; null on failure, `error` then has the reason.
   * Refused before it is decoded: more than `most_pixels` a frame, more than `most_frames`. */
  void* (*index)(int32_t fd, int64_t most_pixels, int64_t most_frames, char* error,
                 int64_t error_bytes);
  void (*drop_index)(void* index);
  struct RidgeVideoInfo (*info)(const void* index);
  double (*seconds)(const void* index, int64_t frame); /* after the first frame */

  /* A decoder of the file that the index is of.  The index must outlive it; null on failure. */
  void* (*open)(const void* index, int32_t fd, char* error, int64_t error_bytes);
  void (*close)(void* decoder);

  /* Frame 0 .. frames-1 as height * width * 3 bytes of RGB: the same bytes whatever was read
   * before.  Returns 0, or 1 and a reason. */
  int32_t (*read)(void* decoder, int64_t frame, uint8_t* rgb, char* error, int64_t error_bytes);
};

/* The one symbol of the plug-in: "ridge_video_api". */
typedef const struct RidgeVideoApi* (*RidgeVideoEntry)(void);

#ifdef __cplusplus
}
#endif
