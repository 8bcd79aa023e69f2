// SPDX-License-Identifier: MIT
// The main() of the test programs. Several test files may be one program (cmake/unit_test.cmake),
// which has a name for each of them: under X_test it runs the tests of X_test.cpp.

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "support/child.hpp"

namespace {

const char* last_part(const char* path) {
    const char* slash = std::strrchr(path, '/');
    return slash == nullptr ? path : slash + 1;
}

bool is_test_file(const std::string& file) { return file.ends_with("_test.cpp"); }

// Leaves out the tests of other files. Those that a header defines stay.
std::string tests_of(const std::string& file) {
    std::string others;
    bool is_here = false;
    const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
    for (int i = 0; i < all.total_test_suite_count(); ++i) {
        const ::testing::TestSuite& suite = *all.GetTestSuite(i);
        for (int k = 0; k < suite.total_test_count(); ++k) {
            const ::testing::TestInfo& test = *suite.GetTestInfo(k);
            const std::string from = last_part(test.file());
            if (from == file) is_here = true;
            if (from == file || !is_test_file(from)) continue;
            others += std::string{others.empty() ? "-" : ":"} + suite.name() + "." + test.name();
        }
    }
    return is_here && !others.empty() ? "*" + others : "*";
}

}  // namespace

int main(int argc, char** argv) {
    if (const auto code = child_code(argc, argv)) return *code;
    ::testing::InitGoogleTest(&argc, argv);
    if (GTEST_FLAG_GET(filter) == "*")
        GTEST_FLAG_SET(filter, tests_of(std::string{last_part(argv[0])} + ".cpp"));
    return RUN_ALL_TESTS();
}
