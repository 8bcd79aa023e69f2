// SPDX-License-Identifier: MIT
#include "runtime/openmetrics.hpp"

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "support/fake_root.hpp"

namespace {

using namespace ums;

// Two times: one of at most a microsecond, one of more than two.
std::string some_times() {
    rt::histogram<3> h{.shortest = 1000};
    h.add(500);
    h.add(2'500'000'000);
    rt::openmetrics to;
    to.times("waits_seconds", "How long.", h);
    return std::move(to).end();
}

constexpr const char* expected = R"(# TYPE waits_seconds histogram
# UNIT waits_seconds seconds
# HELP waits_seconds How long.
waits_seconds_bucket{le="1e-06"} 1
waits_seconds_bucket{le="2e-06"} 1
waits_seconds_bucket{le="+Inf"} 2
waits_seconds_count 2
waits_seconds_sum 2.5000005
# EOF
)";

TEST(openmetrics_test, times_are_in_seconds) { EXPECT_EQ(some_times(), expected); }

// Makes the locale, because most machines have none with a comma.
class comma {
public:
    comma() {
        const std::string make =
            "localedef -i de_DE -f UTF-8 " + (folder_ / "de_DE.UTF-8").string() + " 2>/dev/null";
        works = std::system(make.c_str()) == 0 && ::setenv("LOCPATH", folder_.c_str(), 1) == 0 &&
                std::setlocale(LC_NUMERIC, "de_DE.UTF-8") != nullptr;
    }
    ~comma() {
        std::setlocale(LC_NUMERIC, "C");
        ::unsetenv("LOCPATH");
    }
    bool works = false;

private:
    const fake_root root_{{}};
    const std::filesystem::path folder_{root_.path};
};

TEST(openmetrics_test, a_decimal_point_is_one_in_every_locale) {
    const comma instead;
    if (!instead.works) GTEST_SKIP() << "localedef cannot make the locale de_DE.UTF-8";
    ASSERT_STREQ(std::localeconv()->decimal_point, ",");
    EXPECT_EQ(some_times(), expected);
}

}  // namespace
