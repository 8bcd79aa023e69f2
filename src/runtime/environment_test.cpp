// SPDX-License-Identifier: MIT
#include "runtime/environment.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>
#include <utility>

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

class debug_test : public environment_test {
protected:
    ~debug_test() override { ::unsetenv("UMS_DEBUG"); }
    static void list(const char* words) { ::setenv("UMS_DEBUG", words, 1); }
    static int mode() { return environment::debug_word("mode", 7, {{"a", 1}, {"b", 2}}); }
};

TEST_F(debug_test, words_that_are_not_there_are_left_alone) {
    for (const char* words : {"", "other", "mod", "modes,node=b", "seed=3"}) {
        list(words);
        EXPECT_EQ(mode(), 7) << words;
        EXPECT_TRUE(environment::debug_switch("mode", true)) << words;
        EXPECT_FALSE(environment::debug_switch("mode", false)) << words;
        EXPECT_EQ(environment::debug_number("mode", 9), 9u) << words;
    }
    list("");
    EXPECT_EQ(environment::system_root(), "");
}

TEST_F(debug_test, a_word_is_found_at_every_place_of_the_list) {
    for (const char* words :
         {"mode=b", "mode=b,x", "x,mode=b", "x,mode=b,y=mode", "mode=a,mode=b"}) {
        list(words);
        EXPECT_EQ(mode(), 2) << words;
    }
}

TEST_F(debug_test, a_word_alone_means_its_first_value) {
    list("x,mode,switch");
    EXPECT_EQ(mode(), 1);
    EXPECT_TRUE(environment::debug_switch("switch", false));
}

TEST_F(debug_test, a_switch_is_on_or_off_and_a_number_is_one) {
    list("up=on,down=off,n=18446744073709551615,system_root=/a/b");
    EXPECT_TRUE(environment::debug_switch("up", false));
    EXPECT_FALSE(environment::debug_switch("down", true));
    EXPECT_EQ(environment::debug_number("n", 0), ~std::uint64_t{0});
    EXPECT_EQ(environment::system_root(), "/a/b");
}

// The kind of value; the variable is in the environment.
const child_program reads{"reads", [](const child_arguments& a) {
                              if (a.at(0) == "number") environment::number(variable, 0, 1, 1024);
                              if (a.at(0) == "bytes")
                                  environment::bytes(variable, 0, 16384, 1 << 30);
                              if (a.at(0) == "word")
                                  environment::word(variable, 0, {{"steal", 1}, {"fifo", 2}});
                              if (a.at(0) == "switch") environment::debug_switch("x", false);
                              if (a.at(0) == "debug number") environment::debug_number("x", 0);
                              if (a.at(0) == "root") environment::system_root();
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

TEST_F(debug_test, a_bad_value_of_a_word_ends_the_program_with_one_line) {
    const struct {
        const char *kind, *value, *expected;
    } cases[] = {
        {"switch", "", "on or off"},
        {"switch", "1", "on or off"},
        {"switch", "off=", "on or off"},
        {"debug number", "", "a number from 0 to 18446744073709551615"},
        {"debug number", "-1", "a number from 0 to 18446744073709551615"},
    };
    for (const auto& c : cases) {
        const child_end end =
            run_child("reads", {c.kind}, {{"UMS_DEBUG", "y,x=" + std::string{c.value} + ",z"}});
        EXPECT_EQ(end.code, 2) << end;
        EXPECT_EQ(end.err,
                  "ums: UMS_DEBUG: x=" + std::string{c.value} + ": expected " + c.expected + "\n");
    }
    EXPECT_EQ(run_child("reads", {"debug number"}, {{"UMS_DEBUG", "x"}}).code, 2);
    EXPECT_EQ(run_child("reads", {"root"}, {{"UMS_DEBUG", "system_root=here"}}).err,
              "ums: UMS_DEBUG: system_root=here: expected an absolute path\n");
}

const child_program checks_all{"checks_all", [](const child_arguments& a) {
                                   has_foreign_rights = !a.empty();
                                   environment::reject_unknown();
                                   return 0;
                               }};

TEST_F(environment_test, a_misspelt_variable_ends_the_program_with_one_line) {
    for (const auto& [name, meant] : {std::pair{"UMS_PROCESORS", "UMS_PROCESSORS"},
                                      {"UMS_PORCESSORS", "UMS_PROCESSORS"},
                                      {"UMS_POLICY2", "UMS_POLICY"},
                                      {"UMS_POLIC", "UMS_POLICY"},
                                      {"UMS_processors", "UMS_PROCESSORS"},
                                      {"UMS_STACK", "UMS_STACK_BYTES"},
                                      {"UMS_TIME_SLICE", "UMS_TIME_SLICE_US"},
                                      {"UMS_TIMESLICE_US", "UMS_TIME_SLICE_US"}}) {
        const child_end end = run_child("checks_all", {}, {{name, "1"}});
        EXPECT_EQ(end.code, 2) << name << ": " << end;
        EXPECT_EQ(end.err,
                  "ums: " + std::string{name} + ": no such variable; is " + meant + " meant?\n");
    }
}

TEST_F(debug_test, an_unknown_word_ends_the_program_with_one_line) {
    for (const auto& [words, unknown] : {std::pair{"migrat", "migrat"},
                                         {"migrate,Times", "Times"},
                                         {"1", "1"},
                                         {"migrate,", ""},
                                         {"migrate, times", " times"},
                                         {"processors=4", "processors"}}) {
        const child_end end = run_child("checks_all", {}, {{"UMS_DEBUG", words}});
        EXPECT_EQ(end.code, 2) << words << ": " << end;
        EXPECT_EQ(end.err, "ums: UMS_DEBUG: there is no '" + std::string{unknown} +
                               "'; expected a list of guard, migrate, measure_stacks, deadlock, "
                               "membarrier, times, seed, system_root, tsan\n");
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
                                    {{"UMS_SIGNAL", "1"},
                                     {"UMS_PIN", "1"},
                                     {"UMS_DEBUG", "migrate,seed=1,tsan=1,deadlock=off"}});
    EXPECT_EQ(end.code, 0) << end;
}

TEST_F(environment_test, a_program_with_the_rights_of_another_user_ignores_all_of_them) {
    set("5");
    has_foreign_rights = true;
    EXPECT_EQ(environment::number(variable, 7, 1, 5), 7u);
    EXPECT_EQ(environment::number_or_zero(variable, 7, 1, 5), 7u);
    EXPECT_EQ(environment::bytes(variable, 7, 1, 50), 7u);
    EXPECT_EQ(environment::word(variable, 7, {{"5", 1}}), 7);
    ::setenv("UMS_DEBUG", "x,system_root=/", 1);
    EXPECT_FALSE(environment::debug_switch("x", false));
    EXPECT_EQ(environment::system_root(), "");
    ::unsetenv("UMS_DEBUG");
    has_foreign_rights = false;
    const child_end end =
        run_child("checks_all", {"foreign"}, {{"UMS_PROCESORS", "1"}, {"UMS_DEBUG", "y"}});
    EXPECT_EQ(end.code, 0) << end;
}

}  // namespace
