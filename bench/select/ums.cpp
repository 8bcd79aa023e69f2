// SPDX-License-Identifier: MIT

// select: ums::select over ums::channel.

#include <ums/channel.hpp>
#include <ums/select.hpp>

#include <array>
#include <optional>
#include <utility>

#include "../common/on_ums.hpp"
#include "fan_in.hpp"

namespace {

template <std::size_t N>
class channels {
public:
    explicit channels(std::size_t places_each)
        : channels{places_each, std::make_index_sequence<N>{}} {}

    void send(std::size_t i, int item) { static_cast<void>(all_[i].send(item)); }
    int receive() { return receive(std::make_index_sequence<N>{}); }

private:
    template <std::size_t... I>
    channels(std::size_t places_each, std::index_sequence<I...>)
        : all_{((void)I, ums::channel<int>{places_each})...} {}

    template <std::size_t... I>
    int receive(std::index_sequence<I...>) {
        int got = 0;
        const auto take = [&got](std::optional<int> item) { got = item.value(); };
        ums::select(ums::on_receive(all_[I], take)...);
        return got;
    }

    std::array<ums::channel<int>, N> all_;
};

}  // namespace

int main(int argc, char** argv) {
    return bench::run_select_peer<bench::on_ums, channels>(argc, argv);
}
