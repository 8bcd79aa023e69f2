// SPDX-License-Identifier: MIT
#include "top_page.hpp"

#define NCURSES_NOMACROS 1
#include <fmt/format.h>
#include <ncurses.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <span>
#include <utility>

#include "inspect/stacks.hpp"
#include "inspect/wait_words.hpp"
#include "usage.hpp"

namespace tool {

using namespace inspect;

namespace {

constexpr int key_escape = 27, key_end_of_line = '\n', key_interrupt = 3, key_suspend = 26;
constexpr short green = 1;
// The time between two looks at what runs; not a divisor of the times that programs like to sleep.
constexpr int look_ms = 17;
// Of the fibers with one start function, this many stacks are followed.
constexpr std::size_t stacks_most = 2000;

}  // namespace

top_page::top_page(const process& of, const layout& how, symbols& names, activity_watch& watch,
                   top_view& view, descriptors& fds, double interval_s)
    : how_{how},
      names_{names},
      watch_{watch},
      view_{view},
      fds_{fds},
      by_{of, names},
      interval_{interval_s} {
    if (isatty(STDOUT_FILENO) == 0 || isatty(STDIN_FILENO) == 0)
        throw usage_error{"top: this is no terminal: use --batch or --json"};
    std::setlocale(LC_CTYPE, "");
    SCREEN* const made = newterm(nullptr, stdout, stdin);
    if (made == nullptr) {
        const char* const kind = std::getenv("TERM");
        throw usage_error{fmt::format("top: the terminal '{}' is not known: use --batch",
                                      kind != nullptr ? kind : "")};
    }
    screen_ = made;
    set_escdelay(25);
    raw();
    noecho();
    keypad(stdscr, true);
    curs_set(0);
    if (has_colors()) {
        start_color();
        use_default_colors();
        init_pair(green, COLOR_GREEN, -1);
    }
}

top_page::~top_page() {
    endwin();
    delscreen(static_cast<SCREEN*>(screen_));
}

void top_page::run(std::size_t count) {
    refresh();  // Shows no rates yet; the first ones follow soon.
    due_ = clock::now() + std::chrono::milliseconds{200};
    draw();
    for (std::size_t shown = 0;;) {
        wtimeout(stdscr, look_ms);
        const int key = wgetch(stdscr);
        if (key != ERR) {
            if (!obey(key)) return;
            draw();
        }
        if (is_frozen_ || !overlay_.empty()) continue;
        watch_.look();
        if (clock::now() < due_) continue;
        refresh();
        draw();
        if (++shown == count) return;
    }
}

void top_page::refresh() {
    const std::uint64_t key = selected_key();
    now_ = watch_.next();
    // A look costs CPU time, so it takes at most a tenth of one CPU.
    const std::chrono::duration<double> least{now_.look_seconds * 10};
    due_ = clock::now() + std::chrono::duration_cast<clock::duration>(std::max(interval_, least));
    choose();
    // Finds the same line as before, wherever it is now.
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
        const std::size_t old = std::exchange(selected_, i);
        if (selected_key() == key) break;
        selected_ = old;
    }
    select(0);
}

std::uint64_t top_page::selected_key() const {
    if (selected_ >= chosen_.size()) return 0;
    const std::size_t which = chosen_[selected_];
    assert(now_.now != nullptr && "a line is selected before the first look");
    return view_.shown() == top_view::list::starts
               ? std::hash<std::string>{}(now_.starts[which].made_with.shown)
               : now_.now->fibers[now_.fibers[which].fiber].id;
}

void top_page::choose() {
    chosen_ = view_.chosen(now_);
    select(0);
}

void top_page::select(long step) {
    const long last = static_cast<long>(chosen_.size()) - 1;
    selected_ = static_cast<std::size_t>(
        std::clamp(static_cast<long>(selected_) + step, 0L, std::max(last, 0L)));
}

// --- drawing ---

void top_page::put(int y, const top_line& what, int width) {
    const attr_t how = what.is == top_line::kind::title     ? A_BOLD
                       : what.is == top_line::kind::heading ? A_BOLD | A_UNDERLINE
                                                            : A_NORMAL;
    wmove(stdscr, y, 0);
    wclrtoeol(stdscr);
    wattrset(stdscr, static_cast<int>(how));
    waddnstr(stdscr, what.text.c_str(), static_cast<int>(what.text.size()));
    if (what.is == top_line::kind::heading)
        for (int x = getcurx(stdscr); x < width && getcury(stdscr) == y; ++x) waddch(stdscr, ' ');
    wattrset(stdscr, A_NORMAL);
    if (!has_colors() || what.is != top_line::kind::plain) return;
    for (std::size_t i = 0; i < what.text.size(); ++i)  // Draws the bars.
        if (what.text[i] == '|')
            mvwchgat(stdscr, y, static_cast<int>(i), 1, A_NORMAL, green, nullptr);
}

void top_page::draw() {
    const int height = getmaxy(stdscr), width = getmaxx(stdscr);
    if (height < 2 || width < 2) return;
    werase(stdscr);
    const auto columns = static_cast<unsigned>(width);
    const std::size_t processors_most = static_cast<std::size_t>(std::max(1, height / 3));
    auto head = view_.head(now_, how_.library(), columns, processors_most);
    // At least four lines of the list are always there.
    const int head_rows = std::clamp(static_cast<int>(head.size()), 1, std::max(1, height - 6));
    for (int y = 0; y < head_rows; ++y) put(y, head[static_cast<std::size_t>(y)], width);
    if (overlay_.empty())
        draw_list(head_rows, height - 1);
    else
        draw_overlay(height, width);
    draw_keys(height, width);
    wrefresh(stdscr);
}

void top_page::draw_list(int top, int bottom) {
    const int width = getmaxx(stdscr);
    const auto columns = static_cast<unsigned>(width);
    if (top >= bottom) return;
    list_rows_ = static_cast<std::size_t>(std::max(1, bottom - top - 1));
    assert((selected_ == 0 || selected_ < chosen_.size()) && "a line is selected behind the last");
    if (selected_ < first_) first_ = selected_;
    if (selected_ >= first_ + list_rows_) first_ = selected_ - list_rows_ + 1;
    first_ = std::min(first_, chosen_.size() > list_rows_ ? chosen_.size() - list_rows_ : 0);
    const auto some = std::span{chosen_}.subspan(first_);
    const std::vector<std::string> lines =
        view_.table(now_, some.first(std::min(some.size(), list_rows_)), columns);
    put(top, {top_line::kind::heading, lines[0], 0}, width);
    for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
        const int y = top + 1 + static_cast<int>(i);
        if (y >= bottom) return;
        put(y, {top_line::kind::row, lines[i + 1], 0}, width);
        if (first_ + i == selected_) mvwchgat(stdscr, y, 0, -1, A_REVERSE, 0, nullptr);
    }
}

// In place of everything else, because stacks need the room.
void top_page::draw_overlay(int height, int width) {
    werase(stdscr);
    assert(height > 1 && !overlay_.empty() && "an overlay is drawn without room, or without text");
    const auto rows = static_cast<std::size_t>(height - 1);
    const std::size_t last = overlay_.size() > rows ? overlay_.size() - rows : 0;
    overlay_first_ = std::min(overlay_first_, last);
    for (std::size_t i = 0; i < rows && overlay_first_ + i < overlay_.size(); ++i) {
        const std::string& text = overlay_[overlay_first_ + i];
        const bool is_title = !text.empty() && text[0] != ' ';
        wattrset(stdscr, is_title ? A_BOLD : A_NORMAL);
        mvwaddnstr(stdscr, static_cast<int>(i), 0, text.c_str(), width);
    }
    wattrset(stdscr, A_NORMAL);
}

void top_page::draw_keys(int height, int width) {
    std::string text;
    if (is_asking_) {
        text = "filter (regular expression): " + typed_;
    } else if (!complaint_.empty()) {
        text = complaint_;
    } else if (!overlay_.empty()) {
        text = "q back   arrows, page keys scroll";
    } else {
        text =
            fmt::format("{}q quit  h help  space {}  Tab {}  s sort: {}  / filter{}  Enter stack",
                        is_frozen_ ? "FROZEN  " : "", is_frozen_ ? "continue" : "freeze",
                        view_.shown() == top_view::list::starts ? "fibers" : "starts",
                        view_.sorted_by(), view_.matched().empty() ? "" : ": " + view_.matched());
        const std::string more = fmt::format("   every {:.1f} s, a look takes {:.0f} ms",
                                             interval_.count(), now_.look_seconds * 1000);
        if (text.size() + more.size() < static_cast<std::size_t>(width)) text += more;
    }
    wattrset(stdscr, A_BOLD);
    mvwaddnstr(stdscr, height - 1, 0, text.c_str(), width - 1);
    wattrset(stdscr, A_NORMAL);
}

// --- keys ---

bool top_page::obey(int key) {
    complaint_.clear();
    if (key == KEY_RESIZE) return true;
    if (key == key_interrupt) return false;
    if (key == key_suspend) {
        endwin();
        std::raise(SIGTSTP);
        return true;  // The next wrefresh() takes the screen again.
    }
    if (is_asking_) {
        obey_prompt(key);
        return true;
    }
    if (!overlay_.empty()) {
        obey_overlay(key);
        return true;
    }
    const auto page = static_cast<long>(list_rows_);
    switch (key) {
        case 'q':
        case 'Q':
            return false;
        case 'h':
        case '?':
            open_help();
            break;
        case ' ':
            is_frozen_ = !is_frozen_;
            due_ = clock::now();
            break;
        case '\t':
        case 'f':
            view_.show(view_.shown() == top_view::list::starts ? top_view::list::fibers
                                                               : top_view::list::starts);
            selected_ = first_ = 0;
            choose();
            break;
        case 's':
            view_.sort_by_next();
            selected_ = first_ = 0;
            choose();
            break;
        case '/':
            is_asking_ = true;
            typed_ = view_.matched();
            break;
        case '+':
            interval_ = std::min(interval_ * 2, std::chrono::duration<double>{60});
            break;
        case '-':
            interval_ = std::max(interval_ / 2, std::chrono::duration<double>{0.1});
            due_ = clock::now();
            break;
        case KEY_UP:
        case 'k':
            select(-1);
            break;
        case KEY_DOWN:
        case 'j':
            select(1);
            break;
        case KEY_PPAGE:
            select(-page);
            break;
        case KEY_NPAGE:
            select(page);
            break;
        case KEY_HOME:
            selected_ = 0;
            break;
        case KEY_END:
            select(static_cast<long>(chosen_.size()));
            break;
        case key_end_of_line:
        case '\r':
        case KEY_ENTER:
            open_stack();
            break;
        default:
            break;
    }
    return true;
}

void top_page::obey_overlay(int key) {
    const auto page = static_cast<std::size_t>(std::max(1, getmaxy(stdscr) - 2));
    const auto back = [&](std::size_t n) { overlay_first_ -= std::min(n, overlay_first_); };
    switch (key) {
        case 'q':
        case key_escape:
        case key_end_of_line:
        case '\r':
            overlay_.clear();
            due_ = clock::now();
            break;
        case KEY_UP:
        case 'k':
            back(1);
            break;
        case KEY_DOWN:
        case 'j':
            ++overlay_first_;
            break;
        case KEY_PPAGE:
            back(page);
            break;
        case KEY_NPAGE:
        case ' ':
            overlay_first_ += page;
            break;
        case KEY_HOME:
            overlay_first_ = 0;
            break;
        case KEY_END:
            overlay_first_ = overlay_.size();
            break;
        default:
            break;
    }
}

void top_page::obey_prompt(int key) {
    switch (key) {
        case key_escape:
            is_asking_ = false;
            break;
        case key_end_of_line:
        case '\r':
        case KEY_ENTER:
            is_asking_ = false;
            try {
                view_.match(typed_);
            } catch (const usage_error& e) {
                complaint_ = e.what();
            }
            selected_ = first_ = 0;
            choose();
            break;
        case KEY_BACKSPACE:
        case 127:
        case 8:
            if (!typed_.empty()) typed_.pop_back();
            break;
        case 21:  // Ctrl-U
            typed_.clear();
            break;
        default:
            if (key >= ' ' && key < 127) typed_ += static_cast<char>(key);
            break;
    }
}

void top_page::open_stack() {
    if (selected_ >= chosen_.size()) return;
    const snapshot& s = *now_.now;
    const std::size_t which = chosen_[selected_];
    std::vector<std::uint32_t> fibers;
    if (view_.shown() == top_view::list::starts)
        fibers = now_.starts[which].fibers;
    else
        fibers = {now_.fibers[which].fiber};
    const std::size_t all = fibers.size();
    fibers.resize(std::min(all, stacks_most));
    if (all > stacks_most)
        overlay_ = {fmt::format("the first {} of {} fibers", stacks_most, all), ""};
    for (const stack_group& g : grouped(s, fibers, stacks_of(s, fibers, by_), false)) {
        overlay_.push_back(headline(s, g, fds_));
        if (g.stack.frames.empty()) overlay_.emplace_back("    (it has moved since)");
        for (const std::string& line : lines_of(g.stack, names_)) overlay_.push_back("    " + line);
        overlay_.emplace_back();
    }
    if (overlay_.empty()) overlay_ = {"none of its fibers is there now"};
    overlay_first_ = 0;
}

void top_page::open_help() {
    overlay_ = {
        "ums top: what a process does",
        "",
        "    space      freeze, and continue",
        "    Tab, f     start functions or fibers",
        "    s          sort by the next column",
        "    /          show only what matches: name, start function, state, wait",
        "    Enter      the stacks of the selected line; a running fiber is stopped",
        "               for some microseconds for it",
        "    + -        less often, more often",
        "    arrows, page keys, Home, End: select",
        "    q          quit",
        "",
        "    BUSY       the share of one processor's time, by samples",
        "    NAMES      of the fibers with that start function; a * stands for numbers",
        "    UNMOVED    for how long a fiber stood at the same place whenever it was",
        "               looked at; it may have run in between",
        "    STACK      bytes in use, of a start function those of the deepest",
        "    QUEUE      fibers that are ready and wait for this processor",
    };
    overlay_first_ = 0;
}

}  // namespace tool
