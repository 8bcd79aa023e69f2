// SPDX-License-Identifier: MIT

// channel: the two channels of Boost.Fiber. The buffered one holds one item less than its size,
// which must be a power of two.

#include <boost/fiber/buffered_channel.hpp>
#include <boost/fiber/unbuffered_channel.hpp>

#include "../common/on_boost.hpp"
#include "traffic.hpp"

namespace {

namespace fibers = boost::fibers;

template <class Channel>
struct adapted : Channel {
    using Channel::Channel;
    void send(int item) { this->push(item); }
    bool receive(int& item) { return this->pop(item) == fibers::channel_op_status::success; }
};

using unbuffered = adapted<fibers::unbuffered_channel<int>>;

struct buffered : adapted<fibers::buffered_channel<int>> {
    buffered() : adapted{bench::places} {}
};

}  // namespace

int main(int argc, char** argv) {
    return bench::run_channel_peer<bench::on_boost, unbuffered, buffered, void>(argc, argv);
}
