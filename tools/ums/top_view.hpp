// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/top_view.hpp: the lines of `ums top`, for a terminal of any width and for a batch.

#include <cstddef>
#include <regex>
#include <span>
#include <string>
#include <vector>

#include "inspect/activity.hpp"
#include "inspect/descriptors.hpp"

namespace tool {

struct top_line {
    enum class kind { plain, title, heading, row };
    kind is = kind::plain;
    std::string text;
    std::size_t row = 0;  // The row of the list: index in top_view::chosen().
};

class top_view {
public:
    enum class list { starts, fibers };

    explicit top_view(inspect::start_names& names, inspect::descriptors& fds)
        : names_{names}, fds_{fds} {}

    // Chooses what is shown. Throws usage_error for an invalid key or expression.
    void show(list what) noexcept;
    void sort_by(const std::string& key);
    void sort_by_next();
    void match(const std::string& expression);
    [[nodiscard]] list shown() const { return shown_; }
    [[nodiscard]] const std::string& sorted_by() const { return key_; }
    [[nodiscard]] const std::string& matched() const { return expression_; }

    // Which starts or fibers of the picture, in order: indices in activity::starts or ::fibers.
    [[nodiscard]] std::vector<std::size_t> chosen(const inspect::activity& a) const;

    // Everything above the list. `rows_most` limits the lines of processors.
    [[nodiscard]] std::vector<top_line> head(const inspect::activity& a, const std::string& library,
                                             unsigned width, std::size_t rows_most) const;
    // The heading of the list, and a line for each of `some` of the picture's. What is long shares
    // the width that the rest leaves.
    [[nodiscard]] std::vector<std::string> table(const inspect::activity& a,
                                                 std::span<const std::size_t> some,
                                                 unsigned width) const;

private:
    [[nodiscard]] std::vector<std::string> cells(const inspect::activity& a,
                                                 std::size_t which) const;
    [[nodiscard]] bool has(const inspect::activity& a, std::size_t which) const;

    inspect::start_names& names_;
    inspect::descriptors& fds_;
    list shown_ = list::starts;
    std::string key_ = "share", expression_;
    std::regex wanted_;
};

// 999, 12.3K, 4.56M: at most five characters.
[[nodiscard]] std::string count_in_words(double n);

}  // namespace tool
