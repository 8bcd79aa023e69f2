// SPDX-License-Identifier: MIT
// variants: monitor clang
//
// A program may end while schedulers are entered and workers are busy.

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "carry/detect/detector.hpp"
#include "support/child.hpp"
#include "support/round_robin.hpp"

namespace {

constexpr int exit_code = 17;

// Enters a scheduler on the calling thread and ends the program meanwhile: by exit() in a worker,
// in a worker that blocks, in the scheduler's procedure, or in another thread; or by the return of
// main().
int end_with_a_scheduler(const child_arguments& arguments) {
    const std::string who = arguments[0];
    const bool by_another = who == "other" || who == "main";
    ums_completion_list_t list = 0;
    must(ums_completion_list_create(&list));
    static std::string static_who;
    static_who = who;
    static int entered[2];
    must(::pipe(entered));
    const auto make = [&](ums_worker_function_t function) {
        ums_worker_options_t options = UMS_WORKER_OPTIONS_INIT;
        options.list = list;
        ums_worker_t worker = 0;
        must(ums_worker_create(&worker, &options, function, nullptr));
    };
    make([](void*) -> intptr_t {
        ums_worker_blocking_enter();
        for (;;) ::pause();
    });
    make([](void*) -> intptr_t {
        if (static_who == "worker") std::exit(exit_code);
        if (static_who == "blocked") {
            ums_worker_blocking_enter();
            std::exit(exit_code);
        }
        (void)!::write(entered[1], "x", 1);
        for (;;) ums_worker_yield(nullptr);
    });
    const auto run = [list] {
        schedule(list, [list](ums_reason_t reason, std::uintptr_t payload, void*) {
            if (reason == UMS_REASON_YIELD) {
                if (static_who == "scheduler") std::exit(exit_code);
                (void)ums_worker_execute(payload);
            }
            for (;;) {
                static ums_context_t next = 0;
                if (next == 0) must(ums_completion_list_dequeue(list, UMS_NEVER, &next));
                const ums_context_t c = next;
                next = ums_context_next(c);
                while (ums_worker_execute(c) == -EAGAIN) continue;
            }
        });
    };
    if (!by_another) run();
    std::thread{run}.detach();
    char byte = 0;
    must(::read(entered[0], &byte, 1) == 1 ? 0 : -errno);
    if (who == "other") std::thread{[] { std::exit(exit_code); }}.join();
    return exit_code;
}

const child_program ends{"ends", end_with_a_scheduler};

class exit_test : public testing::TestWithParam<const char*> {};

TEST_P(exit_test, the_program_ends_with_its_code_while_a_scheduler_is_entered) {
    const char* const detector = std::getenv("UMS_BLOCK");
    child_environment set;
    if (detector != nullptr) set.emplace_back("UMS_BLOCK", detector);
    const child_end end = run_child("ends", {GetParam()}, set);
    EXPECT_EQ(end.code, exit_code) << end;
    EXPECT_EQ(end.err, "");
}

INSTANTIATE_TEST_SUITE_P(ways, exit_test,
                         testing::Values("worker", "blocked", "scheduler", "other", "main"),
                         [](const auto& given) { return std::string{given.param}; });

}  // namespace
