// SPDX-License-Identifier: MIT

// channel: ums::channel, in each of its kinds.

#include <ums/channel.hpp>

#include "../common/on_ums.hpp"
#include "traffic.hpp"

namespace {

struct adapted {
    ums::channel<int> channel;
    void send(int item) { static_cast<void>(channel.send(item)); }
    bool receive(int& item) {
        const auto got = channel.receive();
        if (got) item = *got;
        return got.has_value();
    }
    void close() { channel.close(); }
};

struct unbuffered : adapted {};
struct buffered : adapted {
    buffered() : adapted{ums::channel<int>{bench::places}} {}
};
struct unbounded : adapted {
    unbounded() : adapted{ums::channel<int>{ums::unbounded}} {}
};

}  // namespace

int main(int argc, char** argv) {
    return bench::run_channel_peer<bench::on_ums, unbuffered, buffered, unbounded>(argc, argv);
}
