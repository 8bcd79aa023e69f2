// SPDX-License-Identifier: MIT
// variants: monitor
//
// Programs that were written for std's threads work on fibers, on one processor too, and also where
// they wait in loops that call nothing.
//
// Each case runs in a child process, so that one that hangs is named and harms no other.

#include "threads/library.hpp"

#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "ums/run.hpp"

namespace on_kernel_threads {
std::vector<thread_case>& cases() {
    static std::vector<thread_case> all;
    return all;
}
namespace lib = std_library;
#include "threads/all_cases.hpp"
}  // namespace on_kernel_threads

namespace on_fibers {
std::vector<thread_case>& cases() {
    static std::vector<thread_case> all;
    return all;
}
namespace lib = ums_library;
#include "threads/all_cases.hpp"
}  // namespace on_fibers

namespace {

void (*case_of(const std::vector<thread_case>& all, const std::string& name))() {
    for (const thread_case& one : all)
        if (name == one.name) return one.run;
    std::fprintf(stderr, "no such case: %s\n", name.c_str());
    std::exit(99);
}

// gtest notes failures here, outside of a test.
int result() { return ::testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed() ? 1 : 0; }

const child_program fibers{"fibers", [](const child_arguments& arguments) {
                               const auto run = case_of(on_fibers::cases(), arguments.at(0));
                               {
                                   const conservation nothing_left;
                                   ums::run([run] { run(); });
                               }
                               return result();
                           }};

const child_program kernel_threads{"kernel threads", [](const child_arguments& arguments) {
                                       case_of(on_kernel_threads::cases(), arguments.at(0))();
                                       return result();
                                   }};

class thread_program : public ::testing::TestWithParam<thread_case> {
protected:
    static void ends(const char* where, const child_environment& set) {
        const child_end end = run_child(where, {GetParam().name}, set, std::chrono::seconds{60});
        EXPECT_EQ(end.code, 0) << GetParam().name << ": " << end;
    }
    static void ends_on(const char* processors) {
        if (never_stops) GTEST_SKIP() << "fibers are not stopped by a signal under this sanitizer";
        child_environment set{{"UMS_PROCESSORS", processors}};
        if (const char* detector = std::getenv("UMS_BLOCK"))
            set.emplace_back("UMS_BLOCK", detector);
        ends("fibers", set);
    }
};

TEST_P(thread_program, ends_on_kernel_threads) {
    if (std::getenv("UMS_BLOCK") != nullptr) GTEST_SKIP() << "as without the variant";
    if (under_tsan) GTEST_SKIP() << "it does not know the locks inside the C++ library";
    ends("kernel threads", {});
}
TEST_P(thread_program, ends_on_one_processor) { ends_on("1"); }
TEST_P(thread_program, ends_on_two_processors) { ends_on("2"); }

INSTANTIATE_TEST_SUITE_P(all, thread_program, ::testing::ValuesIn(on_fibers::cases()),
                         [](const auto& of) { return std::string{of.param.name}; });

}  // namespace
