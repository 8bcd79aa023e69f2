// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/top_page.hpp: `ums top` on a terminal, by ncurses.
//
// The terminal's own colours are used, so it is legible on light and dark ones.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "inspect/activity.hpp"
#include "inspect/symbols.hpp"
#include "inspect/unwinder.hpp"
#include "top_view.hpp"

namespace tool {

class top_page {
public:
    // Throws usage_error if there is no terminal, or if its type is not known.
    top_page(const inspect::process& of, const inspect::layout& how, inspect::symbols& names,
             inspect::activity_watch& watch, top_view& view, inspect::descriptors& fds,
             double interval_s);
    ~top_page();
    top_page(const top_page&) = delete;
    top_page& operator=(const top_page&) = delete;

    // Runs until a key ends it, or for `count` pictures if that is not 0. Throws what the end of
    // the process throws.
    void run(std::size_t count);

private:
    using clock = std::chrono::steady_clock;

    void refresh();
    void draw();
    void draw_list(int top, int bottom);
    void draw_overlay(int height, int width);
    void draw_keys(int height, int width);
    void put(int y, const top_line& what, int width);
    void choose();
    // Returns false if the page is to end.
    [[nodiscard]] bool obey(int key);
    void obey_overlay(int key);
    void obey_prompt(int key);
    void select(long step);
    void open_stack();
    void open_help();
    [[nodiscard]] std::uint64_t selected_key() const;

    const inspect::layout& how_;
    inspect::symbols& names_;
    inspect::activity_watch& watch_;
    top_view& view_;
    inspect::descriptors& fds_;
    inspect::unwinder by_;
    void* screen_ = nullptr;

    inspect::activity now_;
    std::vector<std::size_t> chosen_;
    std::size_t selected_ = 0, first_ = 0, list_rows_ = 1;
    bool is_frozen_ = false;
    std::chrono::duration<double> interval_;
    clock::time_point due_{};

    std::vector<std::string> overlay_;  // Shown in place of the list if not empty.
    std::size_t overlay_first_ = 0;
    bool is_asking_ = false;  // The user is typing an expression.
    std::string typed_, complaint_;
};

}  // namespace tool
