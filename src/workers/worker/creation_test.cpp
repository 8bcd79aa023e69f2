// SPDX-License-Identifier: MIT
//
// The thread that makes a worker may be slower than the worker, and slower than the scheduler that
// takes the worker from its list.

#include <semaphore>
#include <thread>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "arch/sanitizer.hpp"
#include "support/conservation.hpp"
#include "support/round_robin.hpp"

namespace {

// If set, pthread_create() waits here once the new thread runs.
thread_local std::binary_semaphore* hold_up = nullptr;

class creation : public conserving_test {};

}  // namespace

#if !defined(UMS_ASAN) && !defined(UMS_TSAN)
// Replaces the C library's function. The sanitizers have their own: there no thread is held up, and
// ThreadSanitizer judges.
extern "C" int pthread_create(pthread_t* made, const pthread_attr_t* attributes,
                              void* (*function)(void*), void* argument) noexcept {
    using call = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static call* const real = reinterpret_cast<call*>(::dlsym(RTLD_NEXT, "pthread_create"));
    const int failed = real(made, attributes, function, argument);
    if (hold_up != nullptr) hold_up->acquire();
    return failed;
}
#endif

namespace {

TEST_F(creation, whoever_takes_a_worker_from_its_list_can_use_its_handle) {
    completion_list list;
    ums_worker_t worker = 0;
    std::binary_semaphore has_looked{0};
    std::thread maker{[&] {
        hold_up = &has_looked;
        ums_worker_options_t options = UMS_WORKER_OPTIONS_INIT;
        options.list = list;
        must(ums_worker_create(
            &worker, &options, [](void*) -> intptr_t { return 0; }, nullptr));
    }};
    ums_context_t taken = 0;
    ASSERT_EQ(ums_completion_list_dequeue(list, UMS_NEVER, &taken), 0);
    const ums_worker_t known = worker;
    EXPECT_EQ(ums_worker_context(known), taken);
    EXPECT_EQ(ums_worker_terminate(known, 7), 0);
    has_looked.release();
    maker.join();
    EXPECT_EQ(worker, known);
    std::intptr_t code = 0;
    EXPECT_EQ(ums_worker_join(worker, &code), 0);
    EXPECT_EQ(code, 7);
    // The context came for the last time.
    ums_context_t ended = 0;
    EXPECT_EQ(ums_completion_list_dequeue(list, 0, &ended), 0);
    EXPECT_EQ(ended, taken);
    EXPECT_EQ(ums_context_destroy(ended), 0);
}

}  // namespace
