// SPDX-License-Identifier: MIT
#include "top_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <tuple>

#include "inspect/wait_words.hpp"
#include "usage.hpp"

namespace tool {

using namespace inspect;

namespace {

constexpr const char* start_keys[] = {"share", "count", "stack", "name"};
constexpr const char* fiber_keys[] = {"share", "unmoved", "stack", "name", "id"};

std::string bar(double share, std::size_t width) {
    assert(share >= 0 && "a share is less than nothing");
    const auto full = static_cast<std::size_t>(std::lround(share * static_cast<double>(width)));
    return "[" + std::string(std::min(full, width), '|') +
           std::string(width - std::min(full, width), ' ') + "]";
}

std::string percent(double share) { return fmt::format("{:.0f}%", share * 100); }

// Counts columns of characters, because names may contain UTF-8.
void cut(std::string& text, unsigned width) {
    std::size_t columns = 0, at = 0;
    for (; at < text.size(); ++at) {
        const bool begins = (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
        if (begins && ++columns > width) break;
        if (static_cast<unsigned char>(text[at]) < ' ') text[at] = '?';
    }
    text.erase(at);
    text.erase(text.find_last_not_of(' ') + 1);
}

// A column of the list. Long ones begin at the left, and get less than they need where there is no
// room.
struct column {
    const char* title;
    bool is_long;
    std::size_t least;  // So that it does not jump with every picture.
};
constexpr column start_columns[] = {
    {"BUSY", false, 6}, {"FIBERS", false, 7},          {"STACK", false, 6},
    {"NAMES", true, 0}, {"STATES AND WAITS", true, 0}, {"START", true, 0}};
constexpr column fiber_columns[] = {{"ID", false, 8},       {"STATE", false, 8}, {"BUSY", false, 5},
                                    {"UNMOVED", false, 7},  {"STACK", false, 6}, {"NAME", true, 0},
                                    {"WAITS FOR", true, 0}, {"START", true, 0}};

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

std::size_t columns_of(const std::string& text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

// As wide as the column, with ".." where something is cut off.
std::string fitted(std::string text, std::size_t width, bool is_long) {
    std::size_t columns = columns_of(text);
    if (columns > width) {
        cut(text, static_cast<unsigned>(width > 2 ? width - 2 : width));
        if (width > 2) text += "..";
        columns = columns_of(text);
    }
    const std::string room(width - columns, ' ');
    return is_long ? text + room : room + text;
}

// The long columns share what the others leave: one that needs less than its part gets that, and
// leaves the rest to those that need more.
void share_width(std::span<const column> all, std::vector<std::size_t>& widths, std::size_t width) {
    std::size_t others = 0;
    std::vector<std::size_t> by_need;
    for (std::size_t c = 0; c < all.size(); ++c) {
        others += (c == 0 ? 0 : all[c].is_long ? 2 : 1) + (all[c].is_long ? 0 : widths[c]);
        if (all[c].is_long) by_need.push_back(c);
    }
    std::size_t left = width > others ? width - others : 0, count = by_need.size();
    std::sort(by_need.begin(), by_need.end(),
              [&](std::size_t x, std::size_t y) { return widths[x] < widths[y]; });
    for (const std::size_t c : by_need) {
        widths[c] = std::min(widths[c], left / count--);
        left -= widths[c];
    }
}

top_line line(top_line::kind is, std::string text, unsigned width) {
    cut(text, width);
    return {is, std::move(text), 0};
}

// Fits as many words of a list into each line as there is room for.
std::vector<std::string> wrapped(const std::string& what, const std::string& text, unsigned width,
                                 std::size_t most) {
    std::vector<std::string> lines{what};
    std::size_t at = 0;
    while (at < text.size()) {
        std::size_t end = text.find(", ", at);
        end = end == std::string::npos ? text.size() : end + 2;
        if (lines.back().size() + (end - at) > width + 1 && lines.back() != what) {
            if (lines.size() == most) {
                lines.back() += "..";
                return lines;
            }
            lines.emplace_back(what.size(), ' ');
        }
        lines.back() += text.substr(at, end - at);
        at = end;
    }
    return lines;
}

// The processors side by side, as many as the width has room for.
constexpr unsigned processor_width = 50;

std::string processor_heading() {
    return fmt::format("{:<8} {:<10} {:>4} {:>8} {:>7} {:>6}", "PROC", "BUSY", "", "SWITCH/S",
                       "STEAL/S", "QUEUE");
}

}  // namespace

std::string count_in_words(double n) {
    if (n <= 0) return "0";
    if (n < 9.95) return fmt::format("{:.1f}", n);
    if (n < 999.5) return fmt::format("{:.0f}", n);
    const char* units = "KMGT";
    while (n >= 999.5 && *units != 0) {
        n /= 1000;
        if (n < 999.5 || units[1] == 0) break;
        ++units;
    }
    return fmt::format("{:.{}f}{}", n, n < 9.995 ? 2 : n < 99.95 ? 1 : 0, *units);
}

void top_view::show(list what) noexcept {
    shown_ = what;
    key_ = "share";
}

void top_view::sort_by(const std::string& key) {
    const auto has_key = [&](const auto& keys) {
        return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
    };
    if (shown_ == list::starts ? has_key(start_keys) : has_key(fiber_keys)) {
        key_ = key;
        return;
    }
    throw usage_error{fmt::format(
        "--sort: '{}' is none of {}", key,
        shown_ == list::starts ? fmt::join(start_keys, ", ") : fmt::join(fiber_keys, ", "))};
}

void top_view::sort_by_next() {
    const auto advance = [&](const auto& keys) {
        const auto at = std::find(std::begin(keys), std::end(keys), key_);
        key_ = at + 1 >= std::end(keys) ? keys[0] : at[1];
    };
    if (shown_ == list::starts)
        advance(start_keys);
    else
        advance(fiber_keys);
}

void top_view::match(const std::string& expression) {
    try {
        wanted_ = std::regex{expression};
        expression_ = expression;
    } catch (const std::regex_error& e) {
        throw usage_error{
            fmt::format("--match: '{}' is no regular expression: {}", expression, e.what())};
    }
}

bool top_view::has(const activity& a, std::size_t which) const {
    assert(which < (shown_ == list::starts ? a.starts.size() : a.fibers.size()) &&
           "not in the picture");
    if (expression_.empty()) return true;
    if (shown_ == list::starts) {
        const start_activity& g = a.starts[which];
        return std::regex_search(g.made_with.words(), wanted_) ||
               std::any_of(g.names.begin(), g.names.end(), [&](const auto& name) {
                   return std::regex_search(name.first, wanted_);
               });
    }
    const fiber_record& f = a.now->fibers[a.fibers[which].fiber];
    return std::regex_search(f.name, wanted_) ||
           std::regex_search(names_.of(a.fibers[which].start).words(), wanted_) ||
           std::regex_search(std::string{name_of(f.waits)}, wanted_) ||
           std::regex_search(std::string{name_of(f.state)}, wanted_);
}

std::vector<std::size_t> top_view::chosen(const activity& a) const {
    std::vector<std::size_t> all;
    const std::size_t n = shown_ == list::starts ? a.starts.size() : a.fibers.size();
    for (std::size_t i = 0; i < n; ++i)
        if (has(a, i)) all.push_back(i);
    const auto by = [&](auto key) {
        std::vector<std::size_t> rank(n);  // Equal ones keep their order.
        for (std::size_t i = 0; i < all.size(); ++i) rank[all[i]] = i;
        std::sort(all.begin(), all.end(), [&](std::size_t x, std::size_t y) {
            return std::pair{key(x), rank[x]} < std::pair{key(y), rank[y]};
        });
    };
    if (shown_ == list::starts) {
        const auto& s = a.starts;
        by([&](std::size_t i) {
            return std::tuple{-double(s[i].fibers.size()), s[i].made_with.shown};
        });
        if (key_ == "share") by([&](std::size_t i) { return -s[i].share; });
        if (key_ == "stack") by([&](std::size_t i) { return ~s[i].stack_most; });
        if (key_ == "name") by([&](std::size_t i) { return s[i].made_with.shown; });
        return all;
    }
    const auto fiber = [&](std::size_t i) -> const fiber_record& {
        return a.now->fibers[a.fibers[i].fiber];
    };
    by([&](std::size_t i) { return fiber(i).id; });
    if (key_ == "share")
        by([&](std::size_t i) { return std::pair{-a.fibers[i].share, -a.fibers[i].unmoved_s}; });
    if (key_ == "unmoved") by([&](std::size_t i) { return -a.fibers[i].unmoved_s; });
    if (key_ == "stack") by([&](std::size_t i) { return ~fiber(i).stack_used; });
    if (key_ == "name") by([&](std::size_t i) { return fiber(i).name; });
    return all;
}

std::vector<top_line> top_view::head(const activity& a, const std::string& library, unsigned width,
                                     std::size_t rows_most) const {
    using kind = top_line::kind;
    assert(a.now != nullptr && "a page is drawn before the first look");
    const snapshot& s = *a.now;
    std::vector<top_line> lines;
    const auto add = [&](kind is, std::string text) {
        lines.push_back(line(is, std::move(text), width));
    };
    add(kind::title,
        fmt::format("{}: {} fibers; libums {}", s.of().title(), s.fibers.size(), library));
    for (const std::string& one : wrapped("states: ", in_words(by_state(s)), width, 2))
        add(kind::plain, one);
    if (const name_counts waits = by_wait(s); !waits.empty())
        for (const std::string& one : wrapped("waits:  ", in_words(waits), width, 3))
            add(kind::plain, one);
    for (const cluster_activity& c : a.clusters) {
        std::string rates = fmt::format("{} switches, {} spawned, {} ended, {} hand-offs",
                                        count_in_words(c.switches), count_in_words(c.spawned),
                                        count_in_words(c.finished), count_in_words(c.hand_offs));
        if (c.stops != 0) rates += fmt::format(", {} stops", count_in_words(c.stops));
        if (c.preemptions != 0)
            rates += fmt::format(", {} preemptions", count_in_words(c.preemptions));
        const std::string what =
            fmt::format("cluster {}: {:.1f} of {} processors busy, {} carriers{}; a second: ",
                        printable(c.name), c.busy, c.processors, c.carriers,
                        c.queued != 0 ? fmt::format(", {} in its inbox", c.queued) : "");
        if (what.size() + rates.size() <= width) {
            add(kind::plain, what + rates);
        } else {
            add(kind::plain, what);
            add(kind::plain, "  " + rates);
        }
    }
    std::string engine = fmt::format("engine: {}", s.engine.empty() ? "none yet" : s.engine);
    if (a.hand_off_us != 0)
        engine += fmt::format("; half of the hand-offs within {} us", a.hand_off_us);
    const std::string memory = fmt::format(
        "memory: {} stacks ({} free with memory, {} without), {} mapped", s.memory.stacks,
        s.memory.warm, s.memory.cold, bytes_in_words(s.memory.mapped_bytes));
    if (memory.size() + engine.size() + 2 <= width) {
        add(kind::plain, memory + "; " + engine);
    } else {
        add(kind::plain, memory);
        add(kind::plain, engine);
    }
    if (!s.warning.empty()) add(kind::plain, "warning: " + s.warning);

    const std::size_t columns = std::max(1u, width / processor_width);
    std::string heading;
    for (std::size_t i = 0; i < std::min(columns, a.processors.size()); ++i)
        heading += fmt::format("{:<{}}", processor_heading(), processor_width);
    add(kind::heading, heading);
    // Fills column by column, as one reads a list.
    std::size_t rows = (a.processors.size() + columns - 1) / columns;
    const bool is_cut = rows > rows_most;
    rows = std::min(rows, std::max<std::size_t>(rows_most, 1));
    for (std::size_t r = 0; r < rows; ++r) {
        std::string text;
        for (std::size_t c = 0; c < columns; ++c) {
            const std::size_t i = c * rows + r;
            if (i >= a.processors.size()) break;
            const processor_activity& p = a.processors[i];
            const std::string name =
                a.clusters.size() > 1
                    ? fmt::format("{}/{}", printable(p.cluster).substr(0, 5), p.index)
                    : std::to_string(p.index);
            const std::string one = fmt::format(
                "{:<8} {} {:>4} {:>8} {:>7} {:>6}", name, bar(p.busy, 8), percent(p.busy),
                count_in_words(p.switches), count_in_words(p.steals), p.queued);
            text += fmt::format("{:<{}}", one, processor_width);
        }
        add(kind::plain, text);
    }
    if (is_cut)
        add(kind::plain,
            fmt::format("and {} more",
                        a.processors.size() - std::min(a.processors.size(), rows * columns)));
    return lines;
}

std::vector<std::string> top_view::cells(const activity& a, std::size_t which) const {
    assert(which < (shown_ == list::starts ? a.starts.size() : a.fibers.size()) &&
           "not in the picture");
    if (shown_ == list::starts) {
        const start_activity& g = a.starts[which];
        std::string what = in_words(g.states);
        if (!g.waits.empty()) what += ": " + in_words(g.waits);
        return {percent(g.share),
                std::to_string(g.fibers.size()),
                bytes_in_words(g.stack_most),
                printable(in_words(g.names, false)),
                what,
                shortened(g.made_with.shown, 200)};
    }
    const fiber_activity& one = a.fibers[which];
    const fiber_record& f = a.now->fibers[one.fiber];
    return {
        std::to_string(f.id),
        name_of(f.state),
        percent(one.share),
        one.unmoved_s > 0 ? duration_in_words(static_cast<std::int64_t>(one.unmoved_s * 1e9)) : "-",
        bytes_in_words(f.stack_used),
        printable(f.name),
        wait_in_words(*a.now, f, fds_),
        shortened(names_.of(one.start).shown, 200)};
}

std::vector<std::string> top_view::table(const activity& a, std::span<const std::size_t> some,
                                         unsigned width) const {
    const std::span<const column> all = shown_ == list::starts
                                            ? std::span<const column>{start_columns}
                                            : std::span<const column>{fiber_columns};
    std::vector<std::vector<std::string>> rows(1);
    for (const column& c : all) rows[0].emplace_back(c.title);
    for (const std::size_t which : some) rows.push_back(cells(a, which));
    std::vector<std::size_t> widths(all.size());
    for (std::size_t c = 0; c < all.size(); ++c) {
        widths[c] = all[c].least;
        for (const auto& row : rows) widths[c] = std::max(widths[c], columns_of(row[c]));
    }
    share_width(all, widths, width);
    std::vector<std::string> lines;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t c = 0; c < all.size(); ++c) {
            if (c != 0) line += all[c].is_long ? "  " : " ";
            line += fitted(row[c], widths[c], all[c].is_long);
        }
        cut(line, width);
        lines.push_back(std::move(line));
    }
    return lines;
}

}  // namespace tool
