// Loaded before the C library: dlopen finds no file whose name has ABSENT in it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __thread char said[4200];

void* dlopen(const char* name, int mode) {
  void* (*real)(const char*, int) = dlsym(RTLD_NEXT, "dlopen");
  const char* absent = getenv("ABSENT");
  said[0] = 0;
  if (name == NULL || absent == NULL || strstr(name, absent) == NULL) return real(name, mode);
  snprintf(said, sizeof said, "%s: cannot open shared object file: No such file or directory",
           name);
  return NULL;
}

char* dlerror(void) {
  char* (*real)(void) = dlsym(RTLD_NEXT, "dlerror");
  return said[0] != 0 ? said : real();
}
