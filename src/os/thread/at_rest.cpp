// SPDX-License-Identifier: MIT
#include "os/thread/at_rest.hpp"

#include <sys/stat.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UMS_HAS_TSAN 1
#endif
#endif

namespace ums::os {

namespace {
#if defined(UMS_HAS_TSAN)
constexpr unsigned of_others = 1;  // ThreadSanitizer's own.
#else
constexpr unsigned of_others = 0;
#endif
}  // namespace

constinit base::atomic<unsigned> at_rest::count_;

// The kernel counts two links of the folder, and one for each thread.
bool at_rest::are_all() noexcept {
    struct stat folder;
    if (::stat("/proc/self/task", &folder) != 0 || folder.st_nlink < 3) return false;
    return folder.st_nlink - 2 == count_.load(base::seq_cst) + of_others;
}

}  // namespace ums::os
