// Loaded before the C library: reads of files named *failing* at or behind byte FAIL_AT give EIO.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_named(int fd, const char* part) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t count = readlink(link, path, sizeof path - 1);
  if (count < 0) return 0;
  path[count] = 0;
  return strstr(path, part) != NULL;
}

static int fails(int fd, long end) {
  const char* at = getenv("FAIL_AT");
  return is_named(fd, "failing") && end > (at != NULL ? atol(at) : 0);
}

ssize_t pread(int fd, void* to, size_t count, off_t offset) {
  ssize_t (*real)(int, void*, size_t, off_t) = dlsym(RTLD_NEXT, "pread");
  if (!fails(fd, offset + (long)count)) return real(fd, to, count, offset);
  errno = EIO;
  return -1;
}

// A full disk: writes to files named *samples* at or behind byte FULL_AT, if that is set.
ssize_t pwrite(int fd, const void* from, size_t count, off_t offset) {
  ssize_t (*real)(int, const void*, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");
  const char* full_at = getenv("FULL_AT");
  if (full_at == NULL || !is_named(fd, "samples") || offset + (long)count <= atol(full_at))
    return real(fd, from, count, offset);
  errno = ENOSPC;
  return -1;
}

ssize_t pwrite64(int fd, const void* from, size_t count, off_t offset) {
  return pwrite(fd, from, count, offset);
}

ssize_t pread64(int fd, void* to, size_t count, off_t offset) {
  return pread(fd, to, count, offset);
}

size_t fread(void* to, size_t size, size_t count, FILE* file) {
  size_t (*real)(void*, size_t, size_t, FILE*) = dlsym(RTLD_NEXT, "fread");
  if (!fails(fileno(file), ftell(file) + (long)(size * count))) return real(to, size, count, file);
  file->_flags |= 0x20;  // glibc's mark of a failed read
  errno = EIO;
  return 0;
}
