// SPDX-License-Identifier: MIT
#include "rt/environment.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "support/child.hpp"

namespace {
// Whether the program pretends to have another user's rights.
bool has_foreign_rights = false;
}  // namespace

// The linker finds this function before the C library's.
extern "C" char* secure_getenv(const char* name) noexcept {
    return has_foreign_rights ? nullptr : std::getenv(name);
}

namespace {

namespace environment = ums::rt::environment;

constexpr const char* variable = "UMS_ENVIRONMENT_TEST";

class environment_test : public ::testing::Test {
protected:
    ~environment_test() override { ::unsetenv(variable); }
    static void set(const char* value) { ::setenv(variable, value, 1); }
};

TEST_F(environment_test, what_is_not_set_is_left_alone) {
    ::unsetenv(variable);
    EXPECT_EQ(environment::number(variable, 7, 1, 5), 7u);
    EXPECT_EQ(environment::bytes(variable, 7, 10, 50), 7u);
    EXPECT_EQ(environment::word(variable, 7, {{"a", 1}}), 7);
}

TEST_F(environment_test, numbers_within_the_bounds_are_taken) {
    for (const auto& [text, value] : {std::pair{"1", 1u}, {"5", 5u}, {"003", 3u}}) {
        set(text);
        EXPECT_EQ(environment::number(variable, 0, 1, 5), value);
    }
    set("18446744073709551615");
    EXPECT_EQ(environment::number(variable, 0, 0, ~std::uint64_t{0}), ~std::uint64_t{0});
}

TEST_F(environment_test, zero_may_stand_beside_the_bounds) {
    for (const auto& [text, value] : {std::pair{"0", 0u}, {"3", 3u}, {"5", 5u}}) {
        set(text);
        EXPECT_EQ(environment::number_or_zero(variable, 7, 3, 5), value);
    }
    ::unsetenv(variable);
    EXPECT_EQ(environment::number_or_zero(variable, 7, 3, 5), 7u);
}

TEST_F(environment_test, bytes_may_have_a_unit) {
    const struct {
        const char* text;
        std::size_t value;
    } cases[] = {
        {"16384", 16384}, {"16K", 16384}, {"1M", 1 << 20}, {"1G", 1 << 30}, {"1024K", 1 << 20}};
    for (const auto& c : cases) {
        set(c.text);
        EXPECT_EQ(environment::bytes(variable, 0, 16384, 1 << 30), c.value) << c.text;
    }
}

TEST_F(environment_test, words_have_their_values) {
    set("off");
    EXPECT_EQ(environment::word(variable, 7, {{"on", 1}, {"off", 0}}), 0);
    set("on");
    EXPECT_EQ(environment::word(variable, 7, {{"on", 1}, {"off", 0}}), 1);
}

// The kind of value; the variable is in the environment.
const child_program reads{"reads", [](const child_arguments& a) {
                              if (a.at(0) == "number") environment::number(variable, 0, 1, 1024);
                              if (a.at(0) == "bytes")
                                  environment::bytes(variable, 0, 16384, 1 << 30);
                              if (a.at(0) == "word")
                                  environment::word(variable, 0, {{"steal", 1}, {"fifo", 2}});
                              return 0;
                          }};

void expect_refused(const char* kind, const std::string& value, const std::string& expected) {
    const child_end end = run_child("reads", {kind}, {{variable, value}});
    EXPECT_EQ(end.code, 2) << kind << " '" << value << "': " << end;
    EXPECT_EQ(end.err,
              "ums: " + std::string{variable} + "=" + value + ": expected " + expected + "\n");
}

TEST_F(environment_test, what_is_no_number_ends_the_program_with_one_line) {
    for (const char* bad : {"", " ", "0", "1025", "-1", "+1", "1.5", "1e2", "0x10", "two", "7 ",
                            " 7", "7K", "18446744073709551616", "99999999999999999999999999"})
        expect_refused("number", bad, "a number from 1 to 1024");
}

TEST_F(environment_test, what_is_no_number_of_bytes_ends_the_program_with_one_line) {
    for (const char* bad :
         {"", "K", "0", "16383", "15K", "2G", "1025M", "1k", "16KB", "16KK", "16 K", "-16K",
          "18446744073709551616", "18446744073709551615G", "17179869185G", "1.5M"})
        expect_refused("bytes", bad,
                       "a number of bytes from 16384 to 1073741824, with K, M or G if you like");
}

TEST_F(environment_test, an_unknown_word_ends_the_program_with_one_line) {
    for (const char* bad : {"", "Steal", "steal ", "stea", "stealing", "1", "fifo,steal"})
        expect_refused("word", bad, "steal or fifo");
}

const child_program checks_all{"checks_all", [](const child_arguments& a) {
                                   has_foreign_rights = !a.empty();
                                   environment::reject_misspelt();
                                   return 0;
                               }};

TEST_F(environment_test, a_misspelt_variable_ends_the_program_with_one_line) {
    for (const auto& [name, meant] : {std::pair{"UMS_PROCESORS", "UMS_PROCESSORS"},
                                      {"UMS_PORCESSORS", "UMS_PROCESSORS"},
                                      {"UMS_POLICY2", "UMS_POLICY"},
                                      {"UMS_POLIC", "UMS_POLICY"},
                                      {"UMS_processors", "UMS_PROCESSORS"},
                                      {"UMS_TIMESLICE_US", "UMS_TIME_SLICE_US"}}) {
        const child_end end = run_child("checks_all", {}, {{name, "1"}});
        EXPECT_EQ(end.code, 2) << name << ": " << end;
        EXPECT_EQ(end.err, "ums: " + std::string{name} + ": no such variable; is " + meant +
                               " meant?\n");
    }
}

TEST_F(environment_test, the_variables_of_others_do_not_matter) {
    const child_end end = run_child("checks_all", {},
                                    {{"XUMS_POLICY", "1"},
                                     {"UMSPOLICY", "1"},
                                     {"ums_policy", "1"},
                                     {"UMS_", "1"},
                                     {"UMS_ID", "7"},
                                     {"UMS_SERVICE_HOST", "10.0.0.7"},
                                     {"UMS_SERVICE_PORT", "80"},
                                     {"UMS_PORT_80_TCP", "tcp://10.0.0.7:80"},
                                     {"UMS_DEBUG_OUTPUT", "1"}});
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_EQ(end.err, "");
}

TEST_F(environment_test, each_variable_of_ours_is_one) {
    const child_end end = run_child("checks_all", {},
                                    {{"UMS_TIMES", "1"}, {"UMS_TSAN", "1"}, {"UMS_SEED", "1"}});
    EXPECT_EQ(end.code, 0) << end;
}

TEST_F(environment_test, a_program_with_the_rights_of_another_user_ignores_all_of_them) {
    set("5");
    has_foreign_rights = true;
    EXPECT_EQ(environment::number(variable, 7, 1, 5), 7u);
    EXPECT_EQ(environment::number_or_zero(variable, 7, 1, 5), 7u);
    EXPECT_EQ(environment::bytes(variable, 7, 1, 50), 7u);
    EXPECT_EQ(environment::word(variable, 7, {{"5", 1}}), 7);
    has_foreign_rights = false;
    const child_end end = run_child("checks_all", {"foreign"}, {{"UMS_PROCESORS", "1"}});
    EXPECT_EQ(end.code, 0) << end;
}

}  // namespace

int main(int argc, char** argv) { return child_main(argc, argv); }
