// SPDX-License-Identifier: MIT
#pragma once

// guest.h: what the programs for the guest share. Each is static, prints "ok - ..." or
// "NOT OK - ..." for each check, and "# ..." for what is worth reading.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../../kernel/ums_uapi.h"

static inline void check(int holds, const char* what) {
    printf("%s - %s\n", holds ? "ok" : "NOT OK", what);
    fflush(stdout);
}

// For what no check is about.
static inline void must(int holds, const char* what) {
    if (holds) return;
    printf("NOT OK - %s: %s\n", what, strerror(errno));
    fflush(stdout);
    _exit(1);
}

static inline uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void nap(unsigned us) {
    struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};
    nanosleep(&t, NULL);
}

// The error number of a call that failed, 0 of one that did not.
static inline int error_of(long result) { return result < 0 ? errno : 0; }

static inline int attach(int device, unsigned version) {
    struct ums_attach a = {.version = version};
    return error_of(ioctl(device, UMS_IOC_ATTACH, &a));
}

static inline int new_session(void) {
    const int device = open("/dev/ums", O_RDWR | O_CLOEXEC);
    must(device >= 0, "open /dev/ums");
    must(attach(device, UMS_VERSION) == 0, "attach");
    return device;
}

static inline void start(pthread_t* thread, void* (*body)(void*), void* argument) {
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, 65536);
    must(pthread_create(thread, &a, body, argument) == 0, "pthread_create");
}

// Runs `body` in a fork()ed process, which ends with what it returns. Returns waitpid()'s status.
static inline int in_child(int (*body)(void)) {
    fflush(stdout);
    const pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) _exit(body());
    int status;
    must(waitpid(child, &status, 0) == child, "waitpid");
    return status;
}
