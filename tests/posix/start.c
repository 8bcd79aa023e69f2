/* SPDX-License-Identifier: MIT */

/* Starts the runtime before main(), in a program of which no line is changed. */

#include <stdio.h>
#include <stdlib.h>

#include <ums/ums.h>

__attribute__((constructor)) static void start(void) {
    if (ums_runtime_start(NULL) == 0) return;
    fputs("the runtime does not start\n", stderr);
    abort();
}
