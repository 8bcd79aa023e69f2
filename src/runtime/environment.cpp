// SPDX-License-Identifier: MIT
#include "runtime/environment.hpp"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "ums/options.hpp"

namespace ums::rt::environment {

void refuse(const char* variable, const char* value, const std::string& expected) {
    std::fprintf(stderr, "ums: %s=%s: expected %s\n", variable, value, expected.c_str());
    std::exit(2);
}

namespace {

constexpr const char* known[] = {
    "UMS_PROCESSORS", "UMS_STACK_BYTES",   "UMS_POLICY",      "UMS_PIN",
    "UMS_SPIN_NS",    "UMS_CARRIERS",      "UMS_SIGNAL",      "UMS_WARM_STACKS",
    "UMS_BLOCK",      "UMS_TIME_SLICE_US", "UMS_STATS_FILES", "UMS_STATS_DIRECTORY",
    "UMS_TRACE",      "UMS_DEBUG",         "UMS_CPUS",        "UMS_FOLLOW_CPUS",
};

// The words of UMS_DEBUG.
constexpr std::string_view debug_words[] = {
    "guard", "migrate", "measure_stacks", "deadlock", "membarrier",
    "times", "seed",    "system_root",    "tsan",
};

// Parses all of [first, last) as a decimal number.
bool parse(const char* first, const char* last, std::uint64_t& value) {
    const auto [end, error] = std::from_chars(first, last, value);
    return error == std::errc{} && end == last && first != last;
}

// A value in [least, most], or `besides`.
std::uint64_t decimal(const char* variable, const char* value, std::uint64_t otherwise,
                      std::uint64_t least, std::uint64_t most, std::uint64_t besides) {
    if (value == nullptr) return otherwise;
    std::uint64_t n = 0;
    if (!parse(value, value + std::strlen(value), n) || ((n < least || n > most) && n != besides))
        refuse(variable, value,
               (besides != least ? std::to_string(besides) + ", or " : std::string{}) +
                   "a number from " + std::to_string(least) + " to " + std::to_string(most));
    return n;
}

int one_of(const char* variable, const char* value, int otherwise,
           std::initializer_list<std::pair<const char*, int>> words) {
    if (value == nullptr) return otherwise;
    std::string expected;
    for (const auto& [name, meaning] : words) {
        if (std::strcmp(name, value) == 0) return meaning;
        expected += expected.empty() ? name : std::string{" or "} + name;
    }
    refuse(variable, value, expected);
}

// Calls each(name, value) for each word of UMS_DEBUG; the value is null if the word is alone. An
// empty list has no words.
template <class F>
void each_debug_word(F&& each) {
    const char* const list = ::secure_getenv("UMS_DEBUG");
    if (list == nullptr || *list == '\0') return;
    for (std::string_view rest = list;;) {
        const std::size_t comma = rest.find(',');
        const std::string word{rest.substr(0, comma)};
        const std::size_t equals = word.find('=');
        each(word.substr(0, equals),
             equals == std::string::npos ? nullptr : word.c_str() + equals + 1);
        if (comma == std::string_view::npos) return;
        rest.remove_prefix(comma + 1);
    }
}

struct debug_value {
    bool is_there = false, is_alone = false;
    std::string text;
    const char* get() const { return is_there ? text.c_str() : nullptr; }
};

debug_value find_debug_word(std::string_view name) {
    debug_value found;
    each_debug_word([&](const std::string& one, const char* value) {
        if (one == name) found = {true, value == nullptr, value == nullptr ? "" : value};
    });
    return found;
}

std::string in_list(const char* name) { return std::string{"UMS_DEBUG: "} + name; }

void reject_unknown_debug_words() {
    each_debug_word([](const std::string& one, const char*) {
        std::string expected;
        for (const std::string_view word : debug_words) {
            if (word == one) return;
            expected += (expected.empty() ? "" : ", ") + std::string{word};
        }
        std::fprintf(stderr, "ums: UMS_DEBUG: there is no '%s'; expected a list of %s\n",
                     one.c_str(), expected.c_str());
        std::exit(2);
    });
}

// How many letters must be inserted, removed, replaced or exchanged with their neighbour to turn
// `a` into `b`.
std::size_t edits(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i)
        for (std::size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1,
                                d[i - 1][j - 1] + (a[i - 1] != b[j - 1] ? 1u : 0u)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[a.size()][b.size()];
}

// The first words of a name, as UMS_STACK, count. Short names are near to other programs' names, so
// otherwise it allows one edit for every four letters after UMS_, and two at most.
bool is_near_miss(std::string name, std::string_view of) {
    for (char& c : name)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (of.starts_with(name + '_')) return true;
    const std::size_t permitted = std::min<std::size_t>((of.size() - 4) / 4, 2);
    return name.size() <= of.size() + permitted && edits(name, of) <= permitted;
}

}  // namespace

std::uint64_t number(const char* variable, std::uint64_t otherwise, std::uint64_t least,
                     std::uint64_t most) {
    return decimal(variable, ::secure_getenv(variable), otherwise, least, most, least);
}

std::uint64_t number_or_zero(const char* variable, std::uint64_t otherwise, std::uint64_t least,
                             std::uint64_t most) {
    return decimal(variable, ::secure_getenv(variable), otherwise, least, most, 0);
}

std::size_t bytes(const char* variable, std::size_t otherwise, std::size_t least,
                  std::size_t most) {
    const char* value = ::secure_getenv(variable);
    if (value == nullptr) return otherwise;
    const char* last = value + std::strlen(value);
    unsigned shift = 0;
    if (last != value) {
        switch (last[-1]) {
            case 'K':
                shift = 10;
                break;
            case 'M':
                shift = 20;
                break;
            case 'G':
                shift = 30;
                break;
            default:
                break;
        }
    }
    std::uint64_t n = 0;
    if (!parse(value, shift != 0 ? last - 1 : last, n) || n > (most >> shift) ||
        (n << shift) < least)
        refuse(variable, value,
               "a number of bytes from " + std::to_string(least) + " to " + std::to_string(most) +
                   ", with K, M or G if you like");
    return n << shift;
}

int word(const char* variable, int otherwise,
         std::initializer_list<std::pair<const char*, int>> words) {
    return one_of(variable, ::secure_getenv(variable), otherwise, words);
}

int debug_word(const char* name, int otherwise,
               std::initializer_list<std::pair<const char*, int>> values) {
    const debug_value found = find_debug_word(name);
    if (found.is_alone) return values.begin()->second;
    return one_of(in_list(name).c_str(), found.get(), otherwise, values);
}

bool debug_switch(const char* name, bool otherwise) {
    return debug_word(name, otherwise, {{"on", 1}, {"off", 0}}) != 0;
}

std::uint64_t debug_number(const char* name, std::uint64_t otherwise) {
    return decimal(in_list(name).c_str(), find_debug_word(name).get(), otherwise, 0,
                   ~std::uint64_t{0}, 0);
}

int detector(int otherwise) {
    return word("UMS_BLOCK", otherwise,
                {{"auto", static_cast<int>(block_detection::automatic)},
                 {"monitor", static_cast<int>(block_detection::monitor)},
                 {"off", static_cast<int>(block_detection::off)}});
}

bool times() { return debug_switch("times", false); }
bool stats_files() { return word("UMS_STATS_FILES", 1, {{"on", 1}, {"off", 0}}) != 0; }

static void expect_absolute(const char* variable, const char* path) {
    if (path != nullptr && path[0] != '/') refuse(variable, path, "an absolute path");
}

const char* stats_directory() {
    const char* const path = ::secure_getenv("UMS_STATS_DIRECTORY");
    expect_absolute("UMS_STATS_DIRECTORY", path);
    return path;
}

std::string system_root() {
    const debug_value found = find_debug_word("system_root");
    expect_absolute(in_list("system_root").c_str(), found.get());
    return found.text;
}

trace_wish trace() {
    constexpr const char* variable = "UMS_TRACE";
    trace_wish wish;
    const char* const value = ::secure_getenv(variable);
    if (value == nullptr || std::strcmp(value, "off") == 0) return wish;
    const char* what = value;
    if (const char* colon = std::strchr(value, ':'); colon != nullptr && value[0] != '/') {
        const char* unit = colon;
        unsigned shift = 0;
        if (unit != value && unit[-1] == 'K')
            shift = 10, --unit;
        else if (unit != value && unit[-1] == 'M')
            shift = 20, --unit;
        if (!parse(value, unit, wish.ring_bytes) || wish.ring_bytes > (1u << 31) >> shift)
            refuse(variable, value, "a number of bytes up to 2048M before the colon");
        wish.ring_bytes <<= shift;
        what = colon + 1;
    }
    wish.is_on = true;
    if (what[0] == '/' && std::strlen(what) < PATH_MAX)
        wish.file = what;
    else if (std::strcmp(what, "on") != 0)
        refuse(variable, value,
               "off, on or an absolute path (of less than " + std::to_string(PATH_MAX) +
                   " bytes), with the rings' size and a colon in front if you like");
    return wish;
}

void reject_unknown() {
    for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
        if (std::strncmp(*at, "UMS_", 4) != 0) continue;
        const char* equals = std::strchr(*at, '=');
        if (equals == nullptr) continue;
        const std::string name(*at, static_cast<std::size_t>(equals - *at));
        if (::secure_getenv(name.c_str()) == nullptr) continue;
        const char* meant = nullptr;
        for (const char* k : known) {
            if (name == k) {
                meant = nullptr;
                break;
            }
            if (is_near_miss(name, k)) meant = k;
        }
        if (meant == nullptr) continue;
        std::fprintf(stderr, "ums: %s: no such variable; is %s meant?\n", name.c_str(), meant);
        std::exit(2);
    }
    reject_unknown_debug_words();
}

}  // namespace ums::rt::environment
