// SPDX-License-Identifier: MIT
#include "replies.hpp"

namespace memcached {

void replies::take_back(mark to) {
    text_.resize(to.text);
    while (values_.size() > to.values) {
        value_bytes_ -= values_.back().it->value_bytes;
        values_.pop_back();
    }
}

unsigned replies::pieces(iovec* into, unsigned most) const noexcept {
    unsigned filled = 0;
    std::size_t skip = sent_ - before_first_;  // How much of what follows was sent.
    const auto add = [&](const char* begin, std::size_t bytes) {
        if (bytes <= skip) {
            skip -= bytes;
            return;
        }
        into[filled++] = {const_cast<char*>(begin) + skip, bytes - skip};
        skip = 0;
    };
    std::size_t text_at = text_before_first_;
    for (std::size_t i = first_; i < values_.size(); ++i) {
        const piece& p = values_[i];
        if (filled + 2 > most) return filled;
        add(text_.data() + text_at, p.at - text_at);
        text_at = p.at;
        const std::string_view value = p.it->value();
        add(value.data(), value.size());
    }
    if (filled < most) add(text_.data() + text_at, text_.size() - text_at);
    return filled;
}

void replies::sent(std::size_t bytes) noexcept {
    sent_ += bytes;
    for (; first_ < values_.size(); ++first_) {
        const piece& p = values_[first_];
        const std::size_t end = before_first_ + p.at - text_before_first_ + p.it->value_bytes;
        if (end > sent_) return;
        before_first_ = end;
        text_before_first_ = p.at;
    }
}

void replies::clear() noexcept {
    if (text_.capacity() > 16 * 1024) return release();
    text_.clear();
    values_.clear();
    value_bytes_ = sent_ = first_ = before_first_ = text_before_first_ = 0;
}

void replies::release() noexcept {
    std::string{}.swap(text_);
    std::vector<piece>{}.swap(values_);
    value_bytes_ = sent_ = first_ = before_first_ = text_before_first_ = 0;
}

}  // namespace memcached
